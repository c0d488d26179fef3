package discovery

import (
	"context"
	"time"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/secrets"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/snapshot/value"
)

// SecretSource is a Source of secrets that needs a goroutine.
type SecretSource interface {
	secrets.Source
	// Run fetches what is wanted until ctx ends.
	Run(ctx context.Context)
}

// keepSecrets makes the Store of the secrets that gateways name.
func (s *Server) keepSecrets(o Options) {
	s.told = newSecretReports(s.Reports, s.Builder.View)
	s.Secrets = secrets.New(secrets.Options{Rights: o.Rights, Now: time.Now, Every: ticker, Trouble: s.told.trouble})
	if o.Cluster != nil {
		var tell func(secrets.Object, secrets.Found)
		source := o.Cluster(func(of secrets.Object, f secrets.Found) { tell(of, f) })
		tell = s.Secrets.AddSource(source)
		s.sources = append(s.sources, source)
	}
	s.files = secrets.NewFiles(s.Secrets)
	s.sources = append(s.sources, s.files)
}

func ticker(d time.Duration) <-chan time.Time { return time.Tick(d) }

// takeCredential passes a Secret or a ConfigMap of a source to that Store.
func (s *Server) takeCredential(e ingest.Event) {
	s.files.Set(secrets.Object{ConfigMap: e.Key.Kind == value.KindConfigMap, Namespace: e.Key.Namespace,
		Name: e.Key.Name}, ingest.Credential(e.Object))
}

// secretViews adapts the Store to the interface of the shards.
type secretViews struct{ store *secrets.Store }

// Open implements shard.Secrets.
func (v secretViews) Open(who identity.Identity, names secrets.Names, from shard.SecretView,
	changed func()) shard.SecretView {
	before, _ := from.(*secrets.View)
	return v.store.Open(who, names, before, changed)
}
