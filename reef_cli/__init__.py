"""The `reef` command and the terminal interface. It speaks HTTP; it never imports `daemon`."""
