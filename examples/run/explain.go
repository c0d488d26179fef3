package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Where everything listens.
const (
	xdsAddr        = "127.0.0.1:15010"
	monitoringAddr = "127.0.0.1:15014"
	readyAddr      = "127.0.0.1:18080"
	gatewayAddr    = "127.0.0.1:18000"
	publicHost     = "echo.example.com"
)

// explain prints what to try.
func explain(o options) error {
	path := filepath.Join(o.mesh, "routes.yaml")
	lines, err := weightLines(path)
	if err != nil {
		return err
	}
	fmt.Printf(`
pilotd is running, with an Envoy as gateway on %[1]s and two versions of a backend behind it.

Ask once:
  curl -s -H 'Host: %[2]s' http://%[1]s/

See the weighted split:
  for i in $(seq 40); do curl -s -H 'Host: %[2]s' http://%[1]s/; done | sort | uniq -c

Change it: edit the weights, lines %[3]s of %[4]s, and ask again.

What pilotd knows: curl http://%[5]s/debug/syncz   Logs: %[6]s   Ctrl-C ends all of it.
`, gatewayAddr, publicHost, strings.Join(lines, " and "), path, monitoringAddr, o.logs)
	return nil
}

// weightLines returns the numbers of the lines with a weight.
func weightLines(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var numbers []string
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "weight:") {
			numbers = append(numbers, fmt.Sprint(i+1))
		}
	}
	return numbers, nil
}
