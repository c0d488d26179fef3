// Package install renders the chart of package deploy and installs it into a cluster with Helm's own library: the helm
// command can upgrade and uninstall what it has installed, and the other way round.
//
// Helm's library is large, so only pilotctl and tests import this package.
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

// Options say what is installed, and where.
type Options struct {
	// Kubeconfig is the path of a file, Context the name of one of its contexts. Empty means what kubectl would use.
	Kubeconfig, Context string
	// Namespace is the namespace that pilotd runs in, Name the name of the release.
	Namespace, Name string
	// Version is the version of chart and image. Empty means the one in the chart.
	Version string
	// Values override the chart's values.
	Values map[string]any
	// SkipCRDs leaves out the CustomResourceDefinitions of Istio's API. Those that exist already are never changed.
	SkipCRDs bool
	// Wait is how long to wait until everything is ready; 0 means not to wait.
	Wait time.Duration
	// DryRun reports what would be done, and changes nothing.
	DryRun bool
	// ResetValues forgets the values of the last installation. Otherwise an upgrade keeps them, and Values override
	// them.
	ResetValues bool
	// Log logs what is done; it may be nil.
	Log func(format string, args ...any)
}

// ReadValues reads files of values, where later files override earlier ones, and then single settings (a.b=c).
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

// Render returns the objects of an installation as YAML, without asking any cluster. It includes the
// CustomResourceDefinitions unless SkipCRDs is set.
func Render(o Options) (string, error) {
	c, err := load(o.Version)
	if err != nil {
		return "", err
	}
	i := action.NewInstall(&action.Configuration{Log: o.log})
	i.ReleaseName, i.Namespace = o.Name, o.Namespace
	// No template reads the cluster's version; this is the oldest one that the chart allows.
	i.KubeVersion = &chartutil.KubeVersion{Version: "v1.29.0", Major: "1", Minor: "29"}
	i.DryRun, i.ClientOnly, i.Replace, i.IncludeCRDs = true, true, true, !o.SkipCRDs
	r, err := i.Run(c, o.Values)
	if err != nil {
		return "", err
	}
	return r.Manifest, nil
}

// Install installs the chart for the first time and returns the objects. It creates the namespace if it does not exist.
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

// Upgrade upgrades an installation to this version of the chart, and to new values.
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

// Rollback restores the installation before the last upgrade.
func Rollback(o Options) error {
	cfg, _, err := o.start()
	if err != nil {
		return err
	}
	r := action.NewRollback(cfg)
	r.DryRun, r.Wait, r.Timeout = o.DryRun, o.Wait > 0, o.Wait
	return r.Run(o.Name)
}

// Uninstall deletes what was installed, except the CustomResourceDefinitions, the namespace, and what pilotd itself has
// created: the Secret with the authority, the roots in the namespaces, and the Lease. It returns what it has deleted.
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

// start loads the chart and connects to the cluster.
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
