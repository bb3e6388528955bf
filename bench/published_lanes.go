package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpRequest is one request of a published operation.
type httpRequest struct {
	method, path string
	body         []byte
}

// bytesFor encodes the request for a host.
func (r *httpRequest) bytesFor(host string, headers map[string]string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: callyard-bench\r\nAccept: application/json\r\n", r.method, r.path, host)
	for _, key := range slices.Sorted(maps.Keys(headers)) {
		fmt.Fprintf(&b, "%s: %s\r\n", key, headers[key])
	}
	if r.method != "GET" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(r.body))
	}
	b.WriteString("\r\n")
	return append([]byte(b.String()), r.body...)
}

// mixTarget is a proxy that is loaded with several requests. Each lane sends them in turn,
// from a different start. If confirm is set, each call is held and confirmed.
type mixTarget struct {
	*Endpoint
	requests []httpRequest
	confirm  bool
}

func newMix(name, base string, pids map[string]int, confirm bool, headers map[string]string, requests ...httpRequest) (*mixTarget, error) {
	e, err := NewEndpoint(name, base+"/", headers)
	if err != nil {
		return nil, err
	}
	e.pids = pids
	return &mixTarget{Endpoint: e, requests: requests, confirm: confirm}, nil
}

// Dial opens the connection of one lane. The size is ignored.
func (m *mixTarget) Dial(ctx context.Context, n, _ int) (Lane, error) {
	l := &mixLane{endpointLane: &endpointLane{ctx: ctx, at: m.Endpoint}, next: n, confirm: m.confirm}
	for i := range m.requests {
		l.requests = append(l.requests, m.requests[i].bytesFor(m.url.Host, m.headers))
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

type mixLane struct {
	*endpointLane
	requests [][]byte
	next     int
	confirm  bool
}

// Call sends the next request and checks its response.
func (l *mixLane) Call() error {
	l.request = l.requests[l.next%len(l.requests)]
	l.next++
	a, err := l.exchange()
	if err != nil {
		return err
	}
	if l.confirm {
		path, err := confirmationPath(a)
		if err != nil {
			return err
		}
		r := httpRequest{"POST", path, []byte(`{"confirm":true}`)}
		l.request = r.bytesFor(l.at.url.Host, l.at.headers)
		if a, err = l.exchange(); err != nil {
			return err
		}
	}
	if a.status != 200 {
		return refusal(a)
	}
	return toolError(a.body)
}

// confirmationPath returns the path that confirms the held call of a response.
func confirmationPath(a answer) (string, error) {
	var held struct {
		ID string `json:"confirmation_id"`
	}
	if a.status != 200 && a.status != 202 {
		return "", refusal(a)
	}
	if err := json.Unmarshal(a.body, &held); err != nil || held.ID == "" || strings.ContainsAny(held.ID, "/ \r\n?#") {
		return "", errors.New("the answer holds no confirmation_id: the call was not held")
	}
	return "/confirmations/" + held.ID, nil
}

// keepAlive is a go-sdk client that stays connected to a server, and its call.
type keepAlive struct {
	*sdkTarget
	tool      string
	arguments json.RawMessage
}

func (k *keepAlive) Dial(ctx context.Context, _, _ int) (Lane, error) {
	return &keepAliveLane{ctx, k}, nil
}

type keepAliveLane struct {
	ctx context.Context // the lifetime of the lane, see Target.Dial
	at  *keepAlive
}

func (l *keepAliveLane) Call() error {
	result, err := l.at.session.CallTool(l.ctx, &mcp.CallToolParams{Name: l.at.tool, Arguments: l.at.arguments})
	switch {
	case err != nil:
		return err
	case result.IsError:
		return errTool
	}
	return nil
}

func (l *keepAliveLane) Close() error { return nil }
