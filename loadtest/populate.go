package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/loadtest/directory"
	"github.com/pilotd/pilotd/loadtest/mesh"
)

func populateCommand() *cobra.Command {
	var name string
	var seed uint64
	c := &cobra.Command{
		Use:   "populate DIR",
		Short: "Write a mesh as a directory of YAML",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := mesh.Find(name)
			if err != nil {
				return err
			}
			if c.Flags().Changed("seed") {
				s.Seed = seed
			}
			d, err := directory.Write(args[0], s)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d services, %d workloads\n", args[0], s.Services, d.Mesh().Workloads())
			return err
		},
	}
	c.Flags().StringVar(&name, "shape", "small", "what mesh: "+strings.Join(mesh.Names(), ", "))
	c.Flags().Uint64Var(&seed, "seed", 0, "which of the meshes of that shape; the shape's own by default")
	return c
}
