package main

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/pilotd/pilotd/loadtest/wire"
)

// issuer holds the flags that choose who issues a certificate of its own to each client.
type issuer struct {
	cert, key   string
	asks        bool
	trustDomain string
}

func (i *issuer) register(f *pflag.FlagSet) {
	f.StringVar(&i.cert, "issuer-cert-file", "",
		"`file` with the certificate of an authority; clients get certificates of it, one for each service account")
	f.StringVar(&i.key, "issuer-key-file", "", "`file` with its key")
	f.BoolVar(&i.asks, "csr", false,
		"get these certificates from the target's certificate service, with the tokens of --token-file")
	f.StringVar(&i.trustDomain, "trust-domain", "cluster.local", "trust domain in the certificates of --issuer-cert-file or --csr")
}

// give configures an endpoint so that its clients get certificates of their own.
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
