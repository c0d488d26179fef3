package parts

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// grpcEcho answers each call with its name.
type grpcEcho struct {
	testpb.UnimplementedTestServiceServer
	name string
}

// StartGRPCEcho serves gRPC's own test service on that address of the pod.
func StartGRPCEcho(t testing.TB, pod *testnet.Pod, addr, name string) {
	t.Helper()
	l, err := pod.Listen(addr)
	if err != nil {
		t.Fatalf("grpc echo %s: %v", name, err)
	}
	server := grpc.NewServer()
	testpb.RegisterTestServiceServer(server, &grpcEcho{name: name})
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
}

func (e *grpcEcho) UnaryCall(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return &testpb.SimpleResponse{ServerId: e.name}, nil
}
