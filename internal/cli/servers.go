package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func serversCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "List the MCP servers and how they are",
		Args:  takes(0, 0),
		RunE: withClient(func(cmd *cobra.Command, c *client, _ []string) error {
			return c.listServers(cmd.Context())
		}),
	}
	cmd.AddCommand(&cobra.Command{
		Use: "show SERVER", ValidArgsFunction: completing(serverIDs),
		Short: "Show one server, its workers, and what it wrote to stderr when it failed",
		Args:  takes(1, 1),
		RunE: withClient(func(cmd *cobra.Command, c *client, args []string) error {
			return c.showServer(cmd.Context(), args[0])
		}),
	}, addServerCommand(), &cobra.Command{
		Use:   "remove SERVER",
		Short: "Remove a server that was added over the API",
		Long: "remove has every worker end a server that came over the API (servers add, POST /servers) and forgets it. It takes front_door.add_servers.\n\n" +
			"A server of a servers file is removed by taking its entry out of the file: its worker sees that by itself.",
		Args: takes(1, 1),
		RunE: withClient(func(cmd *cobra.Command, c *client, args []string) error {
			return c.changeServer(cmd.Context(), with(c.api.RemoveServer, args[0]), args[0])
		}),
	}, &cobra.Command{
		Use:   "restart SERVER",
		Short: "Start a server again at every worker that holds it, without failing calls",
		Long: "restart replaces a server by a new start of itself. The old one takes calls until the new one is ready, and finishes those that it has. " +
			"It returns once the new starts have begun; `callyard servers show SERVER` shows how they are.",
		Args: takes(1, 1),
		RunE: withClient(func(cmd *cobra.Command, c *client, args []string) error {
			return c.changeServer(cmd.Context(), with(c.api.RestartServer, args[0]), args[0])
		}),
	})
	return cmd
}

func (c *client) listServers(ctx context.Context) error {
	var list serverList
	raw, err := c.report(ctx, c.api.ListServers, &list)
	if err != nil {
		return err
	}
	if c.json {
		return c.out.raw(raw)
	}
	rows := make([][]cell, 0, len(list.Servers))
	for i := range list.Servers {
		s := &list.Servers[i]
		rows = append(rows, []cell{
			{text: s.ID}, stateCell(s.State), {text: s.Transport}, {text: s.tools()}, {text: strconv.Itoa(s.WorkerCount)},
			{text: strconv.Itoa(s.sessions())}, riskCell(s.RiskLevel), {text: s.Error},
		})
	}
	return c.out.table([]string{"SERVER", "STATE", "TRANSPORT", "TOOLS", "WORKERS", "SESSIONS", "RISK", "ERROR"}, rows)
}

// tools is how many tools there are, "" while nobody knows.
func (s *serverItem) tools() string {
	if s.Tools == nil {
		return ""
	}
	return strconv.Itoa(*s.Tools)
}

func (s *serverItem) sessions() int {
	n := 0
	for _, w := range s.Workers {
		n += w.Sessions
	}
	return n
}

func stateCell(state string) cell {
	switch state {
	case "initialized":
		return cell{state, green}
	case "starting":
		return cell{state, yellow}
	}
	return cell{state, red}
}

func riskCell(level int) cell {
	switch level {
	case 0:
		return cell{}
	case 1:
		return cell{"low", plain}
	case 2:
		return cell{"medium", yellow}
	case 3:
		return cell{"high", red}
	}
	return cell{strconv.Itoa(level), red}
}

func (c *client) showServer(ctx context.Context, id string) error {
	var s serverItem
	raw, err := c.report(ctx, with(c.api.GetServer, id), &s)
	if err != nil {
		return err
	}
	if c.json {
		return c.out.raw(raw)
	}
	out := c.out
	out.width = 0 // nothing of a single server is cut
	state := stateCell(s.State)
	rows := [][]cell{{{text: "server"}, {text: s.ID}}, {{text: "state"}, state}}
	for _, l := range []struct{ name, value string }{
		{"error", s.Error}, {"transport", s.Transport}, {"calls itself", strings.TrimSpace(s.Title + " " + s.Version)}, {"MCP revision", s.Protocol},
		{"risk", s.Risk}, {"tools", s.tools()}, {"calls", fmt.Sprintf("%d of %d under way, %d waiting", s.InFlight, s.Slots, s.Waiting)},
	} {
		if l.value != "" {
			rows = append(rows, cells(l.name, l.value))
		}
	}
	if err := out.columns(rows); err != nil {
		return err
	}
	if len(s.Workers) > 0 {
		if err := out.text("\n"); err != nil {
			return err
		}
		if err := out.table([]string{"WORKER", "STATE", "PID", "SESSIONS", "SLOTS", "RESTARTS", "ERROR"}, s.workerRows()); err != nil {
			return err
		}
	}
	if s.StderrTail == "" {
		return nil
	}
	tail := strings.ReplaceAll(strings.TrimRight(s.StderrTail, "\r\n"), "\r\n", "\n")
	return out.text("\n" + out.paint(bold, "stderr") + "\n" + visible(tail) + "\n")
}

func (s *serverItem) workerRows() [][]cell {
	rows := make([][]cell, 0, len(s.Workers))
	for _, w := range s.Workers {
		state := stateCell(w.State)
		if w.Draining {
			state = cell{w.State + ", draining", yellow}
		}
		pid := ""
		if w.PID > 0 {
			pid = strconv.Itoa(w.PID)
		}
		rows = append(rows, []cell{
			{text: w.ID}, state, {text: pid}, {text: strconv.Itoa(w.Sessions)}, {text: strconv.Itoa(w.Slots)},
			{text: strconv.Itoa(w.Restarts)}, {text: w.Error},
		})
	}
	return rows
}
