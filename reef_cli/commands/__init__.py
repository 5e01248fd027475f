"""One module per command or small family: read options, call the client, print."""
