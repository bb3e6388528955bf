package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func workersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "workers",
		Short: "List the workers and what they are doing",
		Args:  takes(0, 0),
		RunE: withClient(func(cmd *cobra.Command, c *client, _ []string) error {
			return c.listWorkers(cmd.Context(), time.Now())
		}),
	}
}

func (c *client) listWorkers(ctx context.Context, now time.Time) error {
	var list workerList
	raw, err := c.report(ctx, c.api.ListWorkers, &list)
	if err != nil {
		return err
	}
	if c.json {
		return c.out.raw(raw)
	}
	rows := make([][]cell, 0, len(list.Workers))
	for i := range list.Workers {
		w := &list.Workers[i]
		state := cell{"ready", green}
		if w.Draining {
			state = cell{"draining", yellow}
		}
		rows = append(rows, []cell{
			{text: w.ID}, state, {text: w.Host}, {text: strconv.Itoa(w.PID)}, {text: strconv.Itoa(w.InFlight)},
			w.servers(), {text: age(now.Sub(w.Started))}, {text: w.Version}, {text: w.labels()},
		})
	}
	return c.out.table([]string{"WORKER", "STATE", "HOST", "PID", "CALLS", "SERVERS", "UP", "VERSION", "LABELS"}, rows)
}

// servers is how many of the worker's servers are ready.
func (w *workerItem) servers() cell {
	ready := 0
	for _, s := range w.Servers {
		if s.State == "initialized" {
			ready++
		}
	}
	if ready < len(w.Servers) {
		return cell{fmt.Sprintf("%d of %d", ready, len(w.Servers)), yellow}
	}
	return cell{text: strconv.Itoa(ready)}
}

func (w *workerItem) labels() string {
	parts := make([]string, 0, len(w.Labels))
	for _, name := range slices.Sorted(maps.Keys(w.Labels)) {
		parts = append(parts, name+"="+w.Labels[name])
	}
	return strings.Join(parts, ",")
}

// age is a time in its two largest units. Clocks differ, so it may be negative.
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
