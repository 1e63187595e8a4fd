"""The gRPC contract of the retrieval service; `make proto` writes the stubs anew."""
