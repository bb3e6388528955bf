package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

func workersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List workers and their load",
		Args:  takes(0, 0),
		RunE:  withClient(func(ctx context.Context, c *client, _ []string) error { return listWorkers(ctx, c, time.Now()) }),
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "drain WORKER",
		Short: "Drain a worker: it finishes its calls and exits",
		Long: "drain tells a worker to accept no more calls, to finish its current ones within worker.drain_grace, and to exit, as SIGTERM does. A supervisor such as systemd or Kubernetes then starts a new process. " +
			"It returns once draining has begun; `callyard workers` shows its progress. A worker that is part of `callyard up` cannot be drained alone.",
		Args: takes(1, 1),
		RunE: withClient(func(ctx context.Context, c *client, args []string) error {
			return showStatus(ctx, c, with(c.api.DrainWorker, args[0]), args[0])
		}),
	})
	return cmd
}

func listWorkers(ctx context.Context, c *client, now time.Time) error {
	return show(ctx, c, c.api.ListWorkers, func(list *callyard.WorkerList) error {
		rows := make([][]cell, 0, len(list.Workers))
		for i := range list.Workers {
			w := &list.Workers[i]
			row := cells(w.ID, "", w.Host, decimal(w.Pid), decimal(w.InFlight), "", age(now.Sub(w.Started)), w.Version, labelText(w.Labels, ","))
			if row[1], row[5] = (cell{"ready", green}), readyServers(w); w.Draining {
				row[1] = cell{"draining", yellow}
			}
			rows = append(rows, row)
		}
		return c.out.table([]string{"WORKER", "STATE", "HOST", "PID", "CALLS", "SERVERS", "UP", "VERSION", "LABELS"}, rows)
	})
}

// readyServers formats the number of the worker's servers that are ready.
func readyServers(w *callyard.WorkerItem) cell {
	ready := 0
	for _, s := range w.Servers {
		if s.InitializationState == callyard.WorkerServerInitializationStateInitialized {
			ready++
		}
	}
	if ready < len(w.Servers) {
		return cell{fmt.Sprintf("%d of %d", ready, len(w.Servers)), yellow}
	}
	return cell{text: strconv.Itoa(ready)}
}

// age formats a duration in its two largest units. It may be negative, because clocks differ.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}
