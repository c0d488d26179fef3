// Package install renders the chart of package deploy and puts it into a cluster, by Helm's own library: what it has
// installed, helm can upgrade and uninstall, and the other way round.
//
// It brings Helm's library along, which is large: only pilotctl and tests import it.
package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"

	"github.com/pilotd/pilotd/deploy"
)

// Options say what is installed where.
type Options struct {
	// Kubeconfig is a file, Context one of its contexts; those that kubectl would take when empty.
	Kubeconfig, Context string
	// Namespace is where pilotd runs, Name the release's.
	Namespace, Name string
	// Version is that of chart and image; the chart's own when empty.
	Version string
	// Values lie over the chart's own.
	Values map[string]any
	// SkipCRDs leaves out the kinds of Istio's API. Those that are there already are left alone in any case.
	SkipCRDs bool
	// Wait waits until all of it is ready, for at most so long; not at all when 0.
	Wait time.Duration
	// DryRun asks what would be done, and changes nothing.
	DryRun bool
	// ResetValues forgets the values of the last installation; otherwise an upgrade keeps them below Values.
	ResetValues bool
	// Log is told what is done; it may be nil.
	Log func(format string, args ...any)
}

// ReadValues reads files of values, of which a later one lies over an earlier one, and then single ones (a.b=c).
func ReadValues(files, sets []string) (map[string]any, error) {
	for _, f := range files {
		if strings.Contains(f, "://") {
			return nil, fmt.Errorf("%s: expected a file", f)
		}
	}
	return (&values.Options{ValueFiles: files, Values: sets}).MergeValues(getter.Providers{})
}

// load reads the chart.
func load(version string) (*chart.Chart, error) {
	var files []*loader.BufferedFile
	err := fs.WalkDir(deploy.Chart(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(deploy.Chart(), path)
		files = append(files, &loader.BufferedFile{Name: path, Data: data})
		return err
	})
	if err != nil {
		return nil, err
	}
	c, err := loader.LoadFiles(files)
	if err == nil && version != "" {
		c.Metadata.Version, c.Metadata.AppVersion = strings.TrimPrefix(version, "v"), version
	}
	return c, err
}

// Render returns the objects that an installation would make, as YAML. It asks no cluster. CRDs are there unless
// SkipCRDs leaves them out.
func Render(o Options) (string, error) {
	c, err := load(o.Version)
	if err != nil {
		return "", err
	}
	i := action.NewInstall(&action.Configuration{Log: o.log})
	i.ReleaseName, i.Namespace = o.Name, o.Namespace
	// No template asks for the cluster's version; this is the oldest one that the chart takes.
	i.KubeVersion = &chartutil.KubeVersion{Version: "v1.29.0", Major: "1", Minor: "29"}
	i.DryRun, i.ClientOnly, i.Replace, i.IncludeCRDs = true, true, true, !o.SkipCRDs
	r, err := i.Run(c, o.Values)
	if err != nil {
		return "", err
	}
	return r.Manifest, nil
}

// Install installs the chart for the first time, and returns what it has made. It makes the namespace where there is
// none.
func Install(ctx context.Context, o Options) (string, error) {
	cfg, c, err := o.start()
	if err != nil {
		return "", err
	}
	i := action.NewInstall(cfg)
	i.ReleaseName, i.Namespace, i.CreateNamespace, i.SkipCRDs = o.Name, o.Namespace, true, o.SkipCRDs
	i.Wait, i.Timeout = o.Wait > 0, o.Wait
	if o.DryRun {
		i.DryRun, i.DryRunOption = true, "server"
	}
	return manifest(i.RunWithContext(ctx, c, o.Values))
}

// Upgrade brings an installation to this version of the chart, and to other values.
func Upgrade(ctx context.Context, o Options) (string, error) {
	cfg, c, err := o.start()
	if err != nil {
		return "", err
	}
	u := action.NewUpgrade(cfg)
	u.Namespace, u.SkipCRDs = o.Namespace, o.SkipCRDs
	u.ResetValues, u.ResetThenReuseValues = o.ResetValues, !o.ResetValues
	u.Wait, u.Timeout = o.Wait > 0, o.Wait
	if o.DryRun {
		u.DryRun, u.DryRunOption = true, "server"
	}
	return manifest(u.RunWithContext(ctx, o.Name, c, o.Values))
}

// Rollback brings back the installation before the last upgrade.
func Rollback(o Options) error {
	cfg, _, err := o.start()
	if err != nil {
		return err
	}
	r := action.NewRollback(cfg)
	r.DryRun, r.Wait, r.Timeout = o.DryRun, o.Wait > 0, o.Wait
	return r.Run(o.Name)
}

// Uninstall takes away what was installed, but for CRDs, the namespace, and what pilotd has made itself: the Secret
// with the authority, the roots in the namespaces, and the Lease. It returns what has gone.
func Uninstall(o Options) (string, error) {
	cfg, _, err := o.start()
	if err != nil {
		return "", err
	}
	u := action.NewUninstall(cfg)
	u.DryRun, u.Wait, u.Timeout = o.DryRun, o.Wait > 0, o.Wait
	r, err := u.Run(o.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return "", fmt.Errorf("%s is not installed in namespace %s", o.Name, o.Namespace)
	}
	if err != nil {
		return "", err
	}
	return manifest(r.Release, nil)
}

// start reads the chart, and the way to the cluster.
func (o Options) start() (*action.Configuration, *chart.Chart, error) {
	c, err := load(o.Version)
	if err != nil {
		return nil, nil, err
	}
	settings := cli.New()
	settings.SetNamespace(o.Namespace)
	if o.Kubeconfig != "" {
		settings.KubeConfig = o.Kubeconfig
	}
	if o.Context != "" {
		settings.KubeContext = o.Context
	}
	cfg := &action.Configuration{}
	if err := cfg.Init(settings.RESTClientGetter(), o.Namespace, "secret", o.log); err != nil {
		return nil, nil, err
	}
	return cfg, c, nil
}

func (o Options) log(format string, args ...any) {
	if o.Log != nil {
		o.Log(format, args...)
	}
}

func manifest(r *release.Release, err error) (string, error) {
	if err != nil || r == nil {
		return "", err
	}
	return r.Manifest, nil
}
