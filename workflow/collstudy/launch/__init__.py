"""Run cells and verify their algorithms: toolchain, launchers, process binding, messages, output."""
