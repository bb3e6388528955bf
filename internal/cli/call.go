package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/sse"
)

func callCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "call SERVER TOOL [JSON | - | @FILE | KEY=VALUE...]",
		Short: "Run one tool once and print its result",
		Long: "call runs a tool and prints its result.\n\n" +
			"The arguments are a JSON object: on the command line, from standard input (-) or from a file (@FILE). " +
			"KEY=VALUE pairs are combined into an object; a VALUE that is JSON (a number, true, null, an object, a quoted string) " +
			"is used as JSON, and any other VALUE is a string.\n\n" +
			"Exit code: 0 the tool succeeded, 1 it reported an error, 2 the command line is invalid, 3 the call was refused, " +
			"4 Callyard or the server cannot be reached.",
		Example: "  callyard call demo add a=2 b=40\n" +
			"  callyard call demo add '{\"a\":2,\"b\":40}'\n" +
			"  callyard call demo add @arguments.json --json --timeout 30s",
		Args: takes(2, -1),
		RunE: withClient(suggesting(func(ctx context.Context, c *client, args []string) error {
			if timeout < 0 {
				return fail(exitUsage, "--timeout must not be negative: use a duration such as 30s, or omit it to use the server's timeout.")
			}
			arguments, err := untilInterrupt(ctx, func() ([]byte, error) { return callArguments(args[2:], c.in) })
			if err != nil {
				return err
			}
			return callTool(ctx, c, args[0], args[1], arguments, timeout)
		})),
	}
	cmd.ValidArgsFunction = completeCall
	durationVar(cmd.Flags(), &timeout, "timeout", 0, "timeout of the call, such as 30s (default: the server's timeout)")
	return cmd
}

// completeCall completes the server, its tool, and the names of the tool's arguments.
func completeCall(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) < 2 {
		return completing(serverIDs, toolNames)(cmd, args, toComplete)
	}
	if strings.HasPrefix(toComplete, "@") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return complete(cmd, argumentNames, args, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// callSlack is how long the answer may take beyond the time for the tool: the
// call may wait for a place first.
const callSlack = time.Minute

// callTool runs the tool and prints its result. A tool's own error is an exitError
// too, after the result was printed.
func callTool(ctx context.Context, c *client, server, tool string, arguments []byte, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout+callSlack)
		defer cancel()
	}
	var params callyard.CallToolParams
	if timeout > 0 {
		ms := int((timeout + time.Millisecond - 1).Milliseconds()) // at least one
		params.CallyardTimeoutMs = &ms
	}
	held, result, err := awaitCall(ctx, c, func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error) {
		return c.api.CallToolWithBody(ctx, server, tool, &params, mediaJSON, bytes.NewReader(arguments), edit...)
	})
	if err != nil {
		return err
	}
	return printCall(c, held, result, "The tool "+oneLine(tool)+" of server "+oneLine(server)+" reported an error.")
}

// printCall prints the result of a call, or that it is held. A tool's own error is an
// exitError with the text toolError.
func printCall(c *client, held bool, result []byte, toolError string) (err error) {
	if c.out.structured() {
		err = c.out.document(result)
	} else if !held {
		err = c.out.result(result)
	}
	if err != nil {
		return err
	}
	if held {
		return heldCall(result)
	}
	if isToolError(result) {
		return fail(exitToolError, "%s", toolError)
	}
	return nil
}

// awaitCall sends the call and returns its result, or with held the request to confirm
// it. People at a terminal are shown its progress meanwhile; with --output json the
// result is wanted byte for byte, which a stream of events does not promise.
func awaitCall(ctx context.Context, c *client, q request) (held bool, result []byte, err error) {
	if c.out.structured() || !c.note.terminal {
		resp, err := c.do(ctx, q)
		if err != nil {
			return false, nil, err
		}
		defer resp.Body.Close()
		body, err := c.readJSON(ctx, resp)
		return resp.StatusCode == http.StatusAccepted, body, err
	}
	line := progressLine{s: c.note}
	err = c.stream(ctx, q, func(e sse.Event) error {
		switch e.Name {
		case "progress":
			return line.show(e.Data)
		case "result", eventJSON, eventHeld:
			held, result = e.Name == eventHeld, e.Data
			return errEnough
		case "error":
			return failedEvent(c, e.Data)
		}
		return nil
	}, accepts(mediaEvents+", "+mediaJSON+";q=0.5"))
	line.clear()
	if err == nil && result == nil {
		err = fail(exitUnreachable, "The connection to %s ended before the result arrived; the call may have run.", c.base)
	}
	return held, result, err
}

// failedEvent is the error for a call that failed after its answer had begun.
func failedEvent(c *client, data []byte) error {
	var p callyard.Problem
	if err := json.Unmarshal(data, &p); err != nil {
		return c.foreign()
	}
	return c.refused(int(p.Status), http.Header{"Content-Type": {"application/problem+json"}}, data)
}

// heldCall is the error for a call that waits for an approval: it has not run.
func heldCall(body []byte) error {
	var h struct {
		Risk         string `json:"risk_description"`
		Confirmation string `json:"confirmation_id"`
		Approval     string `json:"approval_url"`
		Expires      string `json:"expires_at"`
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return fail(exitRefused, "The call is held until it is confirmed; it has not run.")
	}
	text := "The call is held until it is confirmed; it has not run."
	for _, l := range []struct{ name, value string }{
		{"risk", h.Risk}, {"approve at", h.Approval}, {"confirmation", h.Confirmation}, {"until", h.Expires},
	} {
		if l.value != "" {
			text += fmt.Sprintf("\n  %s: %s", l.name, oneLine(l.value))
		}
	}
	return fail(exitRefused, "%s", text)
}

// progressLine is one line of a terminal that is written again and again.
type progressLine struct {
	s     screen
	shown bool
}

// show writes the progress over what stood there.
func (l *progressLine) show(params []byte) error {
	var p struct {
		Progress json.Number `json:"progress"`
		Total    json.Number `json:"total"`
		Message  string      `json:"message"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil // a tool that reports progress badly may still answer well
	}
	text := p.Progress.String()
	if p.Total != "" {
		text += "/" + p.Total.String()
	}
	text = oneLine(text + " " + p.Message)
	if l.s.width > 1 {
		text = shorten(text, l.s.width-1) // a full line would wrap, and stay
	}
	return l.draw(l.s.paint(faint, text))
}

// draw writes the text over what stood there.
func (l *progressLine) draw(text string) error {
	l.shown = true
	return l.s.text("\r\x1b[K" + text)
}

// clear takes the line away.
func (l *progressLine) clear() {
	if l.shown {
		_ = l.s.text("\r\x1b[K") // nothing is lost when it stays
		l.shown = false
	}
}
