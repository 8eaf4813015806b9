// Counts the arrow keys: forward is one more, back one less. The count outlives runs that Streamlit merges, so no press
// is lost however fast they come.
const STEPS = { ArrowRight: 1, ArrowLeft: -1 };
const OWN_ARROWS =
  "input, textarea, select, [contenteditable=true], [role=slider], [role=radiogroup], [role=menu], [role=listbox], [role=grid], [role=dialog]";

export default function ({ data, setStateValue }) {
  if (window.kvmodelPresses?.visit !== data.visit) window.kvmodelPresses = { visit: data.visit, count: 0 };
  const count = (event) => {
    const step = STEPS[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest?.(OWN_ARROWS)) return;
    event.preventDefault();
    window.kvmodelPresses.count += step;
    setStateValue("pressed", window.kvmodelPresses.count);
  };
  document.addEventListener("keydown", count);
  return () => document.removeEventListener("keydown", count);
}
