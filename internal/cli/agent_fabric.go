package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/agent"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/pkg/risk"
)

// agentFabric implements [agent.Fabric] with a running Callyard.
type agentFabric struct {
	c       *client
	format  string // of the model
	servers []string
}

// Tools implements [agent.Fabric].
func (f *agentFabric) Tools(ctx context.Context, query string, budget int) (*agent.ToolList, error) {
	format := callyard.ListToolsParamsFormat(f.format)
	all := &agent.ToolList{}
	servers := f.servers
	if len(servers) == 0 || query != "" && len(servers) > 1 {
		// Rank all servers together. The agent filters out the other servers and applies one budget.
		servers = []string{""}
	}
	var lists [][]byte
	for _, server := range servers {
		q := callyard.ListToolsParams{Format: &format, Server: optional(server), Query: optional(query), BudgetTokens: optional(int64(budget))}
		var answer struct {
			Tools   json.RawMessage  `json:"tools"`
			Names   []agent.ToolName `json:"names"`
			Omitted int              `json:"omitted"`
		}
		if _, err := f.c.report(ctx, with(f.c.api.ListTools, &q), &answer); err != nil {
			return nil, err
		}
		all.Names, all.Omitted = append(all.Names, answer.Names...), all.Omitted+answer.Omitted
		if inner := bytes.TrimSpace(answer.Tools); len(inner) > 2 {
			lists = append(lists, inner[1:len(inner)-1])
		}
	}
	all.Tools = append(append([]byte{'['}, bytes.Join(lists, []byte{','})...), ']')
	return all, nil
}

// againAfter is the pause before a request is retried after Callyard did not respond.
const againAfter = 500 * time.Millisecond

// Run implements [agent.Fabric]. The idempotency key makes retries safe.
func (f *agentFabric) Run(ctx context.Context, key string, body json.RawMessage, own []string) (*agent.Results, error) {
	format := callyard.CreateToolCallsParamsFormat(f.format)
	params := callyard.CreateToolCallsParams{Format: &format, IdempotencyKey: &key}
	if len(own) > 0 {
		names := strings.Join(own, ",")
		params.Own = &names
	}
	var last error
	for range 3 {
		resp, err := f.c.do(ctx, with3(f.c.api.CreateToolCallsWithBody, &params, mediaJSON, content(body)))
		if err == nil {
			defer resp.Body.Close()
			return f.results(ctx, resp)
		}
		var e *exitError
		if errors.As(err, &e) && e.invalid {
			return nil, &agent.RefusedError{Reason: e.Error()}
		}
		last = err
		if ctx.Err() != nil || exitCode(err) != exitUnreachable {
			return nil, err
		}
		if !sleep.For(againAfter, ctx.Done()) {
			return nil, ctx.Err()
		}
	}
	return nil, last
}

func (f *agentFabric) results(ctx context.Context, resp *http.Response) (*agent.Results, error) {
	var answer struct {
		Messages []json.RawMessage       `json:"messages"`
		Calls    []callyard.ToolCallItem `json:"calls"`
	}
	if _, err := f.c.decode(ctx, resp, &answer); err != nil {
		return nil, err
	}
	results := &agent.Results{Messages: answer.Messages}
	for i := range answer.Calls {
		item := &answer.Calls[i]
		r := agent.CallResult{
			ID: deref(item.ID), Name: item.Name, Server: deref(item.Server), Tool: deref(item.Tool), CallID: deref(item.CallID),
			State: string(item.State), ToolError: deref(item.ToolError),
		}
		if p := item.Problem; p != nil {
			r.Problem = &agent.Problem{Type: p.Type, Title: p.Title, Detail: p.Detail}
		}
		if h := item.Confirmation; h != nil {
			r.Confirmation = &agent.Confirmation{
				ID: deref(h.ConfirmationID), People: h.ConfirmationID == nil, Risk: int(h.RiskLevel), Page: deref(h.ApprovalURL), Expires: h.ExpiresAt,
				Reason: cmp.Or(risk.JoinReasons(h.Reasons), h.RiskDescription),
			}
		}
		results.Calls = append(results.Calls, r)
	}
	return results, nil
}

// Decide implements [agent.Fabric].
func (f *agentFabric) Decide(ctx context.Context, confirmation string, approve bool) error {
	resp, err := f.c.do(ctx, with3(f.c.api.ConfirmCall, confirmation, &callyard.ConfirmCallParams{}, callyard.ConfirmCallJSONRequestBody{Confirm: approve}))
	if err != nil {
		if exitCode(err) == exitRefused && !approve {
			return nil // a denial is answered with the problem of the call
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // the result arrives with the other results
	return nil
}

// Await implements [agent.Fabric].
func (f *agentFabric) Await(ctx context.Context, call string, wait time.Duration) (string, error) {
	seconds := int(wait / time.Second)
	var answer struct {
		State string `json:"state"`
	}
	resp, err := f.c.do(ctx, with2(f.c.api.GetCall, call, &callyard.GetCallParams{Wait: &seconds}))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if _, err := f.c.decode(ctx, resp, &answer); err != nil {
		return "", err
	}
	return answer.State, nil
}
