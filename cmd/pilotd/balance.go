package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/pilotd/pilotd/cluster"
	"github.com/pilotd/pilotd/cmd/pilotd/discovery"
)

// balanceEvery is the interval in which replicas exchange their numbers of streams.
const balanceEvery = 10 * time.Second

// balance keeps this replica at its share of all streams until ctx ends. It needs an API server, through which replicas
// know of each other.
func balance(ctx context.Context, o *options, server *discovery.Server, log *slog.Logger) error {
	if o.rebalance == 0 {
		return nil
	}
	log = log.With(scopeKey, "balance")
	api, err := newAPI(o, log)
	if err != nil || api == nil {
		return err
	}
	tick := time.NewTicker(balanceEvery)
	defer tick.Stop()
	name := "pilotd-load"
	if o.revision != "" && o.revision != "default" {
		name += "-" + o.revision
	}
	b := server.NewBalance(o.rebalance * int(balanceEvery/time.Second))
	api.ShareLoads(ctx, cluster.Loads{Namespace: o.namespace, Name: name, Replica: holder(), Every: tick.C, Log: log,
		Own: func() (int, bool) {
			ready, _ := server.Ready()
			return server.Streams.Streams(), ready
		},
		Tell: func(others []int) { b.SendAway(ctx, b.Round(others), balanceEvery) }})
	return nil
}
