// Counts the keys that step: arrows since the last jump to either end, and the jumps. The counts outlive runs that
// Streamlit merges, so no press is lost however fast they come.
const STEPS = { ArrowRight: 1, ArrowLeft: -1 };
const ENDS = { Home: "first", End: "last" };
const OWN_KEYS =
  "input, textarea, select, [contenteditable=true], [role=slider], [role=radiogroup], [role=menu], [role=listbox], [role=grid], [role=dialog]";

// No key scrolls a panel that cannot have the focus, and Streamlit's cannot.
const reach = () => {
  for (const panel of document.querySelectorAll(".st-key-beside")) {
    panel.tabIndex = panel.scrollHeight > panel.clientHeight ? 0 : -1;
    panel.setAttribute("role", "region");
    panel.setAttribute("aria-label", "Beside the map");
  }
};

export default function ({ data, setStateValue }) {
  if (window.kvmodelKeys?.visit !== data.visit) {
    window.kvmodelKeys = { visit: data.visit, jumps: 0, to: "first", steps: 0 };
  }
  reach();
  const count = (event) => {
    if (event.key === "Tab") reach();
    const step = STEPS[event.key];
    const end = ENDS[event.key];
    if (!(step || end) || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest?.(OWN_KEYS)) return;
    event.preventDefault();
    const keys = window.kvmodelKeys;
    if (end) Object.assign(keys, { jumps: keys.jumps + 1, to: end, steps: 0 });
    else keys.steps += step;
    setStateValue("pressed", { jumps: keys.jumps, to: keys.to, steps: keys.steps });
  };
  // A choice made with the mouse keeps the focus, and with it the arrows; who chose with a key wants them there.
  const release = (event) => {
    if (event.detail && event.target.closest?.("[role=radiogroup]")) document.activeElement?.blur();
  };
  document.addEventListener("keydown", count);
  document.addEventListener("click", release, true);
  return () => {
    document.removeEventListener("keydown", count);
    document.removeEventListener("click", release, true);
  };
}
