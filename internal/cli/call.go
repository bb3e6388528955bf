package cli

import (
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

// callSlack is added to the timeout of the tool for the whole request, because the call may have to
// wait for a free slot first.
const callSlack = time.Minute

// callTool runs the tool and prints its result. If the tool reports an error, callTool prints the
// result and returns an exitError.
func callTool(ctx context.Context, c *client, server, tool string, arguments []byte, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout+callSlack)
		defer cancel()
	}
	var params callyard.CallToolParams
	if timeout > 0 {
		ms := int((timeout + time.Millisecond - 1).Milliseconds()) // round up to at least one
		params.CallyardTimeoutMs = &ms
	}
	held, result, err := awaitCall(ctx, c, c.callRequest(server, tool, &params, arguments))
	if err != nil {
		return err
	}
	return printCall(c, held, result, "The tool "+oneLine(tool)+" of server "+oneLine(server)+" reported an error.")
}

// printCall prints the result of a call, or that the call is held. If the tool reported an error,
// it returns an exitError with the text toolError.
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

// awaitCall sends the call and returns its result. If held is true, the result is the confirmation
// request. At a terminal it shows progress while it waits. For structured output it does not request
// an event stream, because the result must be byte for byte, which a stream does not guarantee.
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

// failedEvent returns the error for a call that failed after its response had started.
func failedEvent(c *client, data []byte) error {
	var p callyard.Problem
	if err := json.Unmarshal(data, &p); err != nil {
		return c.foreign()
	}
	return c.refused(int(p.Status), http.Header{"Content-Type": {"application/problem+json"}}, data)
}

// heldCall returns the error for a call that waits for approval and has not run.
func heldCall(body []byte) error {
	var h struct {
		Call     string    `json:"call_id"`
		Risk     string    `json:"risk_description"`
		Token    string    `json:"confirmation_id"`
		Approval string    `json:"approval_url"`
		Expires  time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return fail(exitRefused, "The call is held and has not run.")
	}
	text, confirm, until := "The call is held until people approve it; it has not run.", "", ""
	if h.Token != "" {
		text, confirm = "The call is held until you confirm it; it has not run.", "POST /confirmations/"+h.Token+` with {"confirm":true}`
	}
	if !h.Expires.IsZero() {
		until = h.Expires.UTC().Format(time.DateTime) + " UTC"
	}
	for _, l := range []struct{ name, value string }{
		{"call", h.Call}, {"risk", h.Risk}, {"approve at", h.Approval}, {"confirm with", confirm}, {"until", until},
	} {
		if l.value != "" {
			text += fmt.Sprintf("\n  %s: %s", l.name, oneLine(l.value))
		}
	}
	return fail(exitRefused, "%s", text)
}

// progressLine is one line of a terminal that is redrawn.
type progressLine struct {
	s     screen
	shown bool
}

// show draws a progress notification.
func (l *progressLine) show(params []byte) error {
	var p struct {
		Progress json.Number `json:"progress"`
		Total    json.Number `json:"total"`
		Message  string      `json:"message"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil // ignore invalid progress: the result may still be valid
	}
	text := p.Progress.String()
	if p.Total != "" {
		text += "/" + p.Total.String()
	}
	text = oneLine(text + " " + p.Message)
	if l.s.width > 1 {
		text = shorten(text, l.s.width-1) // a full line would wrap and could not be erased
	}
	return l.draw(l.s.paint(faint, text))
}

// draw replaces the text of the line.
func (l *progressLine) draw(text string) error {
	l.shown = true
	return l.s.text("\r\x1b[K" + text)
}

// clear removes the line.
func (l *progressLine) clear() {
	if l.shown {
		_ = l.s.text("\r\x1b[K") // best effort: not part of the output
		l.shown = false
	}
}
