package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/visible"
)

func serversCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "List MCP servers and their state",
		Args:  takes(0, 0),
		RunE:  withClient(listServers),
	}
	cmd.AddCommand(&cobra.Command{
		Use: "show SERVER", ValidArgsFunction: completing(serverIDs),
		Short: "Show one server with its workers and its last output on stderr",
		Args:  takes(1, 1),
		RunE:  withClient(suggesting(showServer)),
	}, addServerCommand(), &cobra.Command{
		Use:   "remove SERVER",
		Short: "Remove a server that was added over the API",
		Long: "remove stops and removes a server that was added over the API (servers add, POST /servers) on every worker. It requires front_door.add_servers.\n\n" +
			"To remove a server of a servers file, delete its entry from the file: its worker reloads the file automatically.",
		Args: takes(1, 1),
		RunE: withClient(suggesting(func(ctx context.Context, c *client, args []string) error {
			return showStatus(ctx, c, with(c.api.RemoveServer, args[0]), args[0])
		})),
	}, &cobra.Command{
		Use:   "restart SERVER",
		Short: "Restart a server on every worker, without failing calls",
		Long: "restart replaces a server with a new instance. The old instance accepts calls until the new one is ready, and finishes its running calls. " +
			"It returns once the restarts have begun; `callyard servers show SERVER` shows their progress.",
		Args: takes(1, 1),
		RunE: withClient(suggesting(func(ctx context.Context, c *client, args []string) error {
			return showStatus(ctx, c, with(c.api.RestartServer, args[0]), args[0])
		})),
	})
	return cmd
}

func listServers(ctx context.Context, c *client, _ []string) error {
	return show(ctx, c, c.api.ListServers, func(list *callyard.ServerList) error {
		rows := make([][]cell, 0, len(list.Servers))
		for i := range list.Servers {
			s, sessions := &list.Servers[i], int64(0)
			for _, w := range s.Workers {
				sessions += w.Sessions
			}
			row := cells(s.ID, "", string(s.Transport), toolCount(s), decimal(s.WorkerCount), decimal(sessions), "", deref(s.Error))
			row[1], row[6] = stateCell(readiness(string(s.InitializationState))), riskCell(int(deref(s.RiskLevel)))
			rows = append(rows, row)
		}
		return c.out.table([]string{"SERVER", "STATE", "TRANSPORT", "TOOLS", "WORKERS", "SESSIONS", "RISK", "ERROR"}, rows)
	})
}

// toolCount formats the number of tools, or returns "" while it is unknown.
func toolCount(s *callyard.ServerItem) string {
	if s.Tools == nil {
		return ""
	}
	return decimal(*s.Tools)
}

func decimal[T ~int | ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// readiness returns the state of a server in the words of the start screen. The published API uses
// "initialized" for a server that is ready.
func readiness(state string) string {
	if state == "initialized" {
		return readyState
	}
	return state
}

// stateCell formats the state of a call, an approval, a batch or a server: green for success,
// yellow for states that are not final, red for all others.
func stateCell(state string) cell {
	switch state {
	case "succeeded", "completed", readyState:
		return cell{state, green}
	case "held", "queued", "running", "suspended", "pending", "approved", "receiving", "canceling", "starting":
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

func showServer(ctx context.Context, c *client, args []string) error {
	return show(ctx, c, with(c.api.GetServer, args[0]), func(s *callyard.ServerItem) error { return writeServer(c.out, s) })
}

func writeServer(out screen, s *callyard.ServerItem) error {
	err := out.sheet(cells("server", s.ID), []cell{{text: "state"}, stateCell(readiness(string(s.InitializationState)))}, cells("error", deref(s.Error)), cells("transport", string(s.Transport)),
		cells("title", strings.TrimSpace(deref(s.Title)+" "+deref(s.Version))), cells("MCP revision", deref(s.ProtocolVersion)), cells("risk", deref(s.RiskDescription)), cells("tools", toolCount(s)), cells("pin", string(deref(s.Pin))), cells("not accepted", strings.Join(s.ChangedTools, ", ")),
		cells("calls", fmt.Sprintf("%d of %d running, %d waiting", s.InFlight, s.Slots, s.Waiting)))
	if err != nil {
		return err
	}
	if len(s.Workers) > 0 {
		if err := out.text("\n"); err != nil {
			return err
		}
		if err := out.table([]string{"WORKER", "STATE", "PID", "SESSIONS", "SLOTS", "RESTARTS", "ERROR"}, workerRows(s)); err != nil {
			return err
		}
	}
	if deref(s.StderrTail) == "" {
		return nil
	}
	return out.section("stderr", visible.Terminal(strings.ReplaceAll(strings.TrimRight(*s.StderrTail, "\r\n"), "\r\n", "\n")))
}

func workerRows(s *callyard.ServerItem) [][]cell {
	rows := make([][]cell, 0, len(s.Workers))
	for _, w := range s.Workers {
		pid := ""
		if w.Pid > 0 {
			pid = decimal(w.Pid)
		}
		row := cells(w.ID, "", pid, decimal(w.Sessions), decimal(w.Slots), decimal(w.Restarts), deref(w.Error))
		if row[1] = stateCell(readiness(string(w.InitializationState))); w.Draining {
			row[1] = cell{readiness(string(w.InitializationState)) + ", draining", yellow}
		}
		rows = append(rows, row)
	}
	return rows
}
