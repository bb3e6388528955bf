package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
)

// evalFabric runs the calls that a model makes in a conversation of a data set.
type evalFabric struct {
	c      *client
	target stage.Target
}

// Reset starts a conversation with the initial state of the sample.
func (f *evalFabric) Reset(ctx context.Context, s *eval.Sample) error {
	text, failed, err := f.run(ctx, f.target.ResetCall(s))
	if err == nil && failed {
		err = fmt.Errorf("the tool %s failed: %s", f.target.Reset, text)
	}
	return err
}

// Call runs a call. A refused or held call counts as failed.
func (f *evalFabric) Call(ctx context.Context, s *eval.Sample, call eval.Call) (text string, failed bool, err error) {
	return f.run(ctx, f.target.Call(s, call))
}

func (f *evalFabric) run(ctx context.Context, call stage.ExecCall) (text string, failed bool, err error) {
	if call.Server == "" {
		return "", false, fail(exitUsage, "The call of %s names no server: choose one with --server ID.", oneLine(call.Tool))
	}
	c := f.c.quiet() // a refusal is a result
	resp, err := c.do(ctx, c.callRequest(call.Server, call.Tool, &callyard.CallToolParams{}, call.Arguments))
	if exitCode(err) == exitRefused {
		return err.Error(), true, nil
	}
	if err != nil {
		return "", false, err
	}
	defer resp.Body.Close()
	body, err := c.readJSON(ctx, resp)
	if err != nil {
		return "", false, err
	}
	if resp.StatusCode == http.StatusAccepted {
		return heldCall(body).Error(), true, nil
	}
	text, err = resultText(body)
	return text, isToolError(body), err
}

// resultText returns the text of a result, or its structured content if there is no text.
func resultText(body []byte) (string, error) {
	var r toolResult
	if err := json.Unmarshal(body, &r); err != nil {
		return "", fmt.Errorf("reading a result: %w", err)
	}
	var texts []string
	for _, raw := range r.Content {
		var b block
		if json.Unmarshal(raw, &b) == nil && b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	if len(texts) == 0 {
		return string(r.Structured), nil
	}
	return strings.Join(texts, "\n"), nil
}
