"""How a cell is run and its algorithm verified: toolchain, launchers, bindings, messages, output."""
