package main

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/pilotd/pilotd/loadtest/wire"
)

// issuer are the flags that say who gives each client a certificate of its own.
type issuer struct {
	cert, key   string
	asks        bool
	trustDomain string
}

func (i *issuer) register(f *pflag.FlagSet) {
	f.StringVar(&i.cert, "issuer-cert-file", "",
		"certificate of an authority that signs one for each service account of the clients, when they connect")
	f.StringVar(&i.key, "issuer-key-file", "", "its key")
	f.BoolVar(&i.asks, "csr", false,
		"ask the target's certificate service for one for each service account, with the token in --token-file")
	f.StringVar(&i.trustDomain, "trust-domain", "cluster.local", "trust domain of these certificates")
}

// give gives the clients of an endpoint certificates of their own.
func (i *issuer) give(e *wire.Endpoint, perConnection int) (err error) {
	signs := i.cert != "" || i.key != ""
	switch {
	case !signs && !i.asks:
		return nil
	case signs && i.asks:
		return errors.New("--csr and --issuer-cert-file: want one of them")
	case e.TLS == nil:
		return errors.New("certificates of clients need --tls")
	case perConnection > 1:
		return errors.New("clients with certificates of their own have connections of their own: --streams-per-connection")
	case signs:
		e.Issuer, err = wire.SignedBy(i.cert, i.key, i.trustDomain)
	default:
		e.Issuer, err = wire.AskedOf(*e, i.trustDomain)
	}
	return err
}
