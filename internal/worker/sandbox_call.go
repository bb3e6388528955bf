package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// member is the member of an answer with the environment in which the call ran.
const member = "execution_environment"

// riskWords returns the risk level in the words of MCP Bridge.
func riskWords(level int) string {
	switch level {
	case risk.Low:
		return "Low risk - Standard execution"
	case risk.Medium:
		return "Medium risk - Requires confirmation"
	}
	return "High risk - Docker execution required"
}

// environmentOf returns the description of the environment for answers.
func environmentOf(level int, b *Sandbox, runtime string) []byte {
	says, err := json.Marshal(struct {
		Level     int    `json:"risk_level"`
		Words     string `json:"risk_description"`
		Docker    bool   `json:"docker"`
		Image     string `json:"docker_image"`
		Isolation string `json:"isolation"`
		Runtime   string `json:"runtime,omitempty"`
	}{level, riskWords(level), b.Isolation == schema.IsolationContainer, b.Image, b.Isolation, runtime})
	if err != nil {
		panic(err) // strings and numbers always encode as JSON
	}
	return says
}

// ready returns the reason why no call can run now, or nil. A call that gets it did not start.
func (b *sandboxed) ready() *schema.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return noSandbox("The sandboxes of server %q are being closed; the call was not started.", b.id)
	case b.state == schema.StateInitialized:
		return nil
	case b.fault == "":
		return noSandbox("The %s of the server %q is not ready yet; the call was not started.", b.sandbox.place(), b.id)
	}
	return noSandbox("The call must run in a %s and was not run with weaker isolation: %s", b.sandbox.place(), b.fault)
}

func noSandbox(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.KindUnavailable, format, args...).RetryableAfter(time.Second)
}

// do runs the call of the job in its own container or sandbox and reports its outcome to the job.
// v is the verdict on the call. It has no definition if the method is not tools/call.
func (b *sandboxed) do(j *job, principal string, v verdict) {
	if !b.begin(j, b.timeout, func(ctx context.Context, deadline time.Time) { b.run(ctx, j, principal, v, deadline) }) {
		j.done(&j.request, session.Outcome{Err: b.ready()})
	}
}

// run takes a container, runs the call in it, and waits for the container's end.
func (b *sandboxed) run(ctx context.Context, j *job, principal string, v verdict, deadline time.Time) {
	use, err := b.take(ctx, principal, deadline)
	if err != nil {
		if j.ended.Load() {
			err = session.CanceledEarly()
		} else {
			b.inDoubt()
		}
		j.done(&j.request, session.Outcome{Err: schema.AsError(err)})
		return
	}
	defer func() { <-b.places }()
	if v.definition != nil && !offers(use.session, v.definition) {
		use.release()
		j.done(&j.request, session.Outcome{Err: schema.Errorf(schema.KindServerFailed,
			"The tool %q differs in the %s of server %q from the tool outside, so the call was not started; use the same version of the server in both.", j.request.Name, b.sandbox.place(), b.id)})
		return
	}
	runtime := b.in.runtime()
	if !b.enter(use.session) {
		use.release()
		j.done(&j.request, session.Outcome{Err: b.ready()})
		return
	}
	_, over := j.send(use.session.Do, deadline)
	out := <-over
	use.release()
	b.mu.Lock()
	delete(b.running, use.session)
	b.mu.Unlock()
	switch {
	case out.Err != nil && out.Err.Kind == schema.KindOutcomeUnknown:
		out.Err.Detail += " It ran in a " + b.sandbox.place() + ", which was destroyed."
	case out.Err == nil && j.request.Method == schema.MethodCallTool:
		out.Body = rawjson.With(out.Body, member, environmentOf(v.level, b.sandbox, runtime))
	}
	j.done(&j.request, out)
	<-use.done
	b.count(use, out, deadline)
}

// enter records a session that is about to run a call, so that close can end it. It returns false
// if calls are being aborted, because close no longer sees the session then.
func (b *sandboxed) enter(one *session.Single) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls.Err() != nil {
		return false
	}
	b.running[one] = struct{}{}
	return true
}

// take waits for a place and for a container.
func (b *sandboxed) take(ctx context.Context, principal string, deadline time.Time) (*use, error) {
	select {
	case b.places <- struct{}{}:
	case <-ctx.Done():
		return nil, noSandbox("The server %q was busy: all of its %d sandboxes were in use. The call did not start; try again later.", b.id, b.slots)
	}
	u, err := b.in.take(ctx, principal, deadline.Add(killGrace)) // the container is prepared at this point
	if err != nil {
		<-b.places
	}
	return u, err
}

// inDoubt makes the keeper check at once.
func (b *sandboxed) inDoubt() {
	select {
	case b.doubt <- struct{}{}:
	default:
	}
}

// offers reports whether the session has the tool with exactly this definition.
func offers(one *session.Single, definition json.RawMessage) bool {
	defs, _ := one.Definitions()
	for _, tool := range defs.Tools {
		if bytes.Equal(tool, definition) {
			return true
		}
	}
	return false
}

// count adds a container that was killed during its call to the metrics.
func (b *sandboxed) count(u *use, out session.Outcome, deadline time.Time) {
	cause := u.cause()
	if cause == "" && out.Err != nil && out.Err.Kind == schema.KindOutcomeUnknown && !time.Now().Before(deadline) {
		cause = sandboxTimedOut
	}
	if cause != "" {
		b.metrics.SandboxKilled(string(b.id), cause)
		b.log.Warn("a container was killed while it ran a call", "reason", cause, "how", fmt.Sprint(u.how()))
	}
}
