package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

// withWords adds to `calls` what people say about durable calls: that one shall
// not run, and what became of one that nobody can tell of.
func withWords(calls *cobra.Command) *cobra.Command {
	cancel := &cobra.Command{
		Use:   "cancel ID",
		Short: "Take back a call that has not left, or ask one that runs to stop",
		Args:  takes(1, 1),
		RunE: withClient(func(cmd *cobra.Command, c *client, args []string) error {
			return c.tell(cmd.Context(), args[0], with(c.api.CancelCall, args[0]))
		}),
	}
	settle := &cobra.Command{
		Use:   "settle ID --as done|failed|run-again --reason TEXT",
		Short: "Say what became of a call whose outcome is unknown, or that was given up",
		Long: "A call is unknown when it left for its server and no answer came: it may have run. Look at what it works on, then say " +
			"--as done (it has run), --as failed (it has not, and shall not) or --as run-again (it has not, and shall). Your name and the reason are kept with the call.",
		Args: takes(1, 1),
	}
	as := settle.Flags().String("as", "", "done, failed or run-again")
	reason := settle.Flags().String("reason", "", "why, for the record")
	settle.RunE = withClient(func(cmd *cobra.Command, c *client, args []string) error {
		switch *as {
		case "done", "failed", "run-again":
		default:
			return fail(exitUsage, "--as is done, failed or run-again.")
		}
		if strings.TrimSpace(*reason) == "" {
			return fail(exitUsage, "--reason is missing: say how you know. It is kept with the call.")
		}
		return c.settle(cmd.Context(), args[0], *as, *reason)
	})
	retry := &cobra.Command{
		Use:   "retry ID",
		Short: "Run a call again that was given up, or whose outcome is unknown",
		Long:  "retry is `settle --as run-again`. A call whose outcome is unknown may have run before: then it runs twice.",
		Args:  takes(1, 1),
	}
	why := retry.Flags().String("reason", "run again by hand", "why, for the record")
	retry.RunE = withClient(func(cmd *cobra.Command, c *client, args []string) error {
		return c.settle(cmd.Context(), args[0], "run-again", *why)
	})
	for _, cmd := range []*cobra.Command{cancel, settle, retry} {
		cmd.ValidArgsFunction = completing(openCallIDs)
	}
	offer(settle, "as", "done", "failed", "run-again")
	calls.AddCommand(cancel, settle, retry)
	return calls
}

func (c *client) settle(ctx context.Context, id, as, reason string) error {
	body, err := json.Marshal(map[string]string{"as": as, "reason": reason})
	if err != nil {
		return err
	}
	return c.tell(ctx, id, func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error) {
		return c.api.SettleCallWithBody(ctx, id, mediaJSON, bytes.NewReader(body), edit...)
	})
}

// tell asks for a change of a call and shows what it is afterwards.
func (c *client) tell(ctx context.Context, id string, change request) error {
	var s struct {
		ID      string   `json:"id"`
		State   string   `json:"state"`
		Settled string   `json:"settled"`
		Problem *problem `json:"problem"`
	}
	raw, err := c.report(ctx, change, &s)
	if err != nil {
		return err
	}
	if c.json {
		return c.out.raw(raw)
	}
	if s.State == "" {
		return c.foreign()
	}
	paint, more := yellow, ""
	switch s.State {
	case "succeeded":
		paint = green
	case "failed", "unknown", "denied", "expired":
		paint = red
	}
	switch {
	case s.Settled != "":
		more = " (settled by " + oneLine(s.Settled) + ")"
	case s.Problem != nil:
		more = ": " + oneLine(firstOf(s.Problem.Detail, s.Problem.Title))
	}
	return c.out.text(fmt.Sprintf("%s is %s%s\n", oneLine(firstOf(s.ID, id)), c.out.paint(paint, oneLine(s.State)), more))
}
