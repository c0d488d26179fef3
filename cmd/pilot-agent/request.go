package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// requestTime bounds the wait for an answer.
const requestTime = time.Minute

func requestCommand() *cobra.Command {
	port := 0
	cmd := &cobra.Command{
		Use:   "request METHOD PATH [BODY]",
		Short: "Send a request to Envoy's admin page, or to the agent",
		Example: `  pilot-agent request GET /config_dump
  pilot-agent request --debug-port 15020 GET /healthz/ready`,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), requestTime)
			defer cancel()
			body := strings.NewReader(strings.Join(args[2:], ""))
			url := fmt.Sprintf("http://localhost:%d/%s", port, strings.TrimPrefix(args[1], "/"))
			r, err := http.NewRequestWithContext(ctx, args[0], url, body)
			if err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			if _, err := io.Copy(cmd.OutOrStdout(), answer.Body); err != nil {
				return err
			}
			if answer.StatusCode >= http.StatusBadRequest {
				return errors.New(answer.Status)
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&port, "debug-port", 15000, "port on localhost: 15000 is Envoy's admin page, 15020 the agent")
	return cmd
}

func waitCommand() *cobra.Command {
	var url string
	var timeout, period, patience int
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait until the proxy is ready",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Duration(patience)*time.Second)
			defer cancel()
			client := &http.Client{Timeout: time.Duration(timeout) * time.Millisecond}
			again := time.NewTicker(max(time.Duration(period)*time.Millisecond, time.Millisecond))
			defer again.Stop()
			for {
				err := ask(ctx, client, url)
				if err == nil {
					return nil
				}
				select {
				case <-again.C:
				case <-ctx.Done():
					return fmt.Errorf("not ready within %d s: %w", patience, err)
				}
			}
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "url", "http://localhost:15021/healthz/ready", "URL that answers 200 when the proxy is ready")
	f.IntVar(&timeout, "requestTimeoutMillis", 500, "how long to wait for an answer, in milliseconds")
	f.IntVar(&period, "periodMillis", 500, "pause between requests, in milliseconds")
	f.IntVar(&patience, "timeoutSeconds", 60, "how long to wait in all, in seconds")
	return cmd
}

func ask(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}
