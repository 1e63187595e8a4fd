"""The gRPC contract of the retrieval service; `make proto` regenerates the stubs."""
