// Command serve serves resources that it is given over HTTP to any xDS client:
//
//	go run -tags vtprotobuf ./examples/anysource/serve -xds localhost:18000 -control localhost:18001 [-types URL,URL]
//	curl -X PUT localhost:18001/resources/NODE -d '{"TYPE URL": {"NAME": "base64 of the message"}}'
//	curl -X DELETE localhost:18001/resources/NODE
//
// PUT replaces all resources of the node with that id; without a node, those of all nodes that have none of their own.
// Types of which pilotd knows nothing are named by -types.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"

	"github.com/pilotd/pilotd/examples/anysource"
)

func main() {
	xds := flag.String("xds", "localhost:18000", "where xDS is served")
	control := flag.String("control", "localhost:18001", "where resources are set")
	types := flag.String("types", "", "URLs of more types to serve, with commas between")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *xds, *control, strings.FieldsFunc(*types, func(r rune) bool { return r == ',' })); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, xds, control string, types []string) error {
	source := anysource.New(types...)
	l, err := net.Listen("tcp", xds)
	if err != nil {
		return err
	}
	door := &http.Server{Addr: control, Handler: handler(source)}
	failed := make(chan error, 2)
	go func() { failed <- door.ListenAndServe() }()
	go func() { failed <- source.Serve(ctx, l) }()
	err = <-failed
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, door.Close())
}

// handler sets and clears resources.
func handler(source *anysource.Source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /resources/{node...}", func(w http.ResponseWriter, r *http.Request) {
		var resources anysource.Resources
		if err := json.NewDecoder(r.Body).Decode(&resources); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		source.Set(r.PathValue("node"), resources)
	})
	mux.HandleFunc("DELETE /resources/{node...}", func(_ http.ResponseWriter, r *http.Request) {
		source.Clear(r.PathValue("node"))
	})
	return mux
}
