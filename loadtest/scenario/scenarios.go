package scenario

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
)

// scenario is something that happens to a mesh.
type scenario struct {
	run func(*run, context.Context, *Phase) error
	// needs returns an error if something is missing; nil if nothing is needed.
	needs func(*run) error
	// trouble says that streams are expected to end.
	trouble bool
}

// scenarios returns all, by name.
func scenarios() map[string]scenario {
	return map[string]scenario{
		"endpoint":  {run: (*run).endpoint, needs: needsEdits},
		"route":     {run: (*run).route, needs: needsEdits},
		"routes":    {run: (*run).routes, needs: needsRoutes},
		"churn":     {run: (*run).churn, needs: needsRate},
		"soak":      {run: (*run).soak, needs: needsEdits},
		"rolling":   {run: (*run).rolling, needs: needsRestarts, trouble: true},
		"stall":     {run: (*run).stall, needs: needsEdits, trouble: true},
		"slow":      {run: (*run).slow, needs: needsEdits, trouble: true},
		"refuse":    {run: (*run).refuse, needs: needsEdits},
		"vanish":    {run: (*run).vanish, needs: needsEdits, trouble: true},
		"reconnect": {run: (*run).reconnect, trouble: true},
		"cut":       {run: (*run).cut, trouble: true},
		"kill":      {run: (*run).kill, needs: needsKill, trouble: true},
		"idle":      {run: (*run).idle},
	}
}

// Names returns the scenarios that there are.
func Names() []string { return slices.Sorted(maps.Keys(scenarios())) }

func list(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func troubled(phase string) bool { return scenarios()[phase].trouble }

func needsEdits(r *run) error {
	if r.Edits == nil {
		return errors.New("needs a mesh to edit")
	}
	return nil
}

func needsRate(r *run) error {
	if err := needsEdits(r); err != nil {
		return err
	}
	if r.Rate <= 0 {
		return errors.New("needs a rate")
	}
	return nil
}

func needsRoutes(r *run) error {
	if _, ok := r.Edits.(RouteEdits); !ok {
		return errors.New("needs a mesh to which routes can be added")
	}
	return nil
}

func needsRestarts(r *run) error {
	if _, ok := r.Edits.(Restarts); !ok {
		return errors.New("needs a mesh whose pods can be replaced")
	}
	return nil
}

func needsKill(r *run) error {
	if r.Kill.PID == 0 && r.Kill.Command == "" {
		return errors.New("needs the process, or the command that kills it")
	}
	if r.Kill.Restart == "" && len(r.Targets) == 1 {
		return errors.New("needs another server for the clients to move to, or the command that starts the server again")
	}
	return nil
}
