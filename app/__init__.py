"""The app: pages that arrange what `kvmodel` computes and draws."""
