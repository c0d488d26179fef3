// Package program has what the command lines of pilotd's programs share.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/cmd/build"
)

// Root returns a program's root command. about is what its help begins with. Main reports the errors of its commands.
func Root(name, about string, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{Use: name, Long: about, SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(commands...)
	return root
}

// Main runs a root command with the arguments of the process. If the command fails, Main prints the error in one line
// and exits with code 1, or the code of WithCode. SIGINT or SIGTERM ends the context of the command.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
		code := 1
		if c, ok := errors.AsType[*coded](err); ok {
			code = c.code
		}
		os.Exit(code)
	}
}

// WithCode returns err with an exit code for Main.
func WithCode(code int, err error) error { return &coded{err, code} }

type coded struct {
	error
	code int
}

// Unwrap returns the error without its code.
func (c *coded) Unwrap() error { return c.error }

// Version returns the command "version" of a program. It prints the program's name, build, platform and Go version in
// one line, followed by more.
func Version(name string, more ...string) *cobra.Command {
	line := append([]string{name, build.Text(), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}, more...)
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(line, " "))
		},
	}
}
