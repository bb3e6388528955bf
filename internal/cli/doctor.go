package cli

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

// doctorCommand examines a running system and reports its faults.
func doctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose a running Callyard and suggest fixes",
		Long: "doctor checks a front door and, if it is reachable, the approver. It changes nothing. Each line is ok, a note, or a fault with its fix.\n\n" +
			"Exit code: 0 no faults, 1 at least one fault. Notes are not faults.",
		Example: "  callyard doctor --url https://callyard.example.com --approver-url https://approve.example.com\n  callyard doctor --held 15m --json",
		Args:    takes(0, 0),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.approver, "approver-url", "", "address of the approver (CALLYARD_APPROVER_URL); without it approvals are checked only if the front door is on this machine and an approver answers at "+defaultApproverURL)
	flags.StringVar(&o.approverKey, "approver-key", "", "API key for the approver (CALLYARD_APPROVER_KEY; default: the key of the front door)")
	flags.StringVar(&o.nats, "nats", "", "addresses of the NATS servers (CALLYARD_NATS_URL), to check that each responds and requires credentials; without them NATS is checked only at "+defaultNATS)
	durationVar(flags, &o.held, "held", time.Hour, "report approvals that wait longer than this as faults")
	cmd.RunE = withClient(func(ctx context.Context, c *client, _ []string) error {
		if o.held <= 0 {
			return fail(exitUsage, "--held must be longer than 0s.")
		}
		o.named = cmp.Or(o.approver, os.Getenv("CALLYARD_APPROVER_URL"))
		o.nats = cmp.Or(o.nats, os.Getenv("CALLYARD_NATS_URL"))
		x := examination{c: c, o: o, out: c.out, now: time.Now}
		c.out.format = formatTable // a refusal is a finding; do not also print it verbatim
		if o.named != "" || c.local() {
			var err error
			if x.approver, err = c.approver(o.named, o.approverKey); err != nil {
				return err
			}
		}
		x.all(ctx)
		if err := context.Cause(ctx); err != nil {
			return fail(exitInterrupted, "Interrupted.")
		}
		return x.printFindings()
	})
	return cmd
}

// doctorOptions holds the values of the flags.
type doctorOptions struct {
	approver, approverKey string
	named                 string // the explicitly configured approver, or ""
	nats                  string // the explicitly configured NATS server, or ""
	held                  time.Duration
}

const (
	// skewMost is the tolerated clock skew of workers: the validity of a signed warrant starts this
	// much before its signing time.
	skewMost = 30 * time.Second
	// restartsMany is the number of restarts that a healthy server does not reach.
	restartsMany = 5
	// doctorWait limits one request. A faulty system may respond late or never.
	doctorWait = 10 * time.Second
	// shownMost limits the number of objects of one kind that are listed individually.
	shownMost = 20
)

// defaultNATS is the NATS address if none is configured.
const defaultNATS = "nats://127.0.0.1:4222"

// examination is one examination of a system.
type examination struct {
	c        *client
	approver *client // nil if its address is unknown
	o        doctorOptions
	out      screen
	now      func() time.Time
	findings []finding
	clock    time.Time // the time of the front door when it was asked
}

// all runs all checks. If the front door does not respond, it skips those that depend on it. The front door
// may have stopped because NATS does not respond.
func (x *examination) all(ctx context.Context) {
	responds := x.frontDoor(ctx)
	x.nats(ctx, responds)
	if !responds {
		return
	}
	x.redis(ctx)
	x.workers(ctx)
	x.servers(ctx)
	x.configuration(ctx)
	x.executions(ctx)
	x.approvals(ctx)
}

// frontDoor checks the front door and reports whether further checks make sense.
func (x *examination) frontDoor(ctx context.Context) bool {
	const at = "front door"
	var version callyard.Version
	said, err := x.look(ctx, x.c, x.c.api.GetVersion, &version)
	if err != nil {
		if exitCode(err) == exitRefused {
			x.fault(at, oneLine(err.Error()), "check that "+x.c.base+" is its address, and pass an API key that is valid there with --key, CALLYARD_KEY or CALLYARD_KEY_FILE")
		} else {
			x.fault(at, oneLine(err.Error()), "check that the process is running (if not, the last line of its log has the reason) and that "+x.c.base+" is its address")
		}
		return false
	}
	x.clock = said.date
	x.ok(at, version.Version+", up for "+age(said.date.Sub(version.Started)))
	x.ready(ctx, x.c, at)
	x.skew(at, said)
	x.losses(ctx)
	return true
}

// ready checks /readyz, which reports whether NATS is connected, and if not, the reason.
func (x *examination) ready(ctx context.Context, c *client, what string) {
	var status struct {
		Status string `json:"status"`
	}
	_, err := x.look(ctx, c, c.api.GetReadyz, &status)
	if err == nil {
		x.ok(what, "ready: connected to NATS")
		return
	}
	said := oneLine(err.Error())
	fix := "check its current log; GET /readyz succeeds when it is ready again"
	switch lower := strings.ToLower(said); {
	case strings.Contains(lower, "drain"):
		fix = "it is shutting down: use another one, or restart it"
	case strings.Contains(lower, "does not store"):
		fix = "check that each NATS server runs and responds (--nats checks those that it names) and has disk space; a cluster that has lost a server recovers within seconds; docs/how-to/recover-from-a-full-disk.md"
	case strings.Contains(lower, "nats"):
		fix = "start nats-server, or repair the network between them; it reconnects automatically. If NATS is running, check nats.url and the credentials of its user"
	case strings.Contains(lower, "redis"):
		fix = "start Redis, or check redis.url; without Redis no new approvals can be opened"
	}
	x.fault(what, said, fix)
}

// response is the time of a response: date by the clock of the server, and between asked and came by
// the local clock.
type response struct{ date, asked, came time.Time }

// skew returns the smallest possible difference between the clocks. A slow response is none.
func (r response) skew() time.Duration {
	return max(r.asked.Sub(r.date), r.date.Sub(r.came), 0)
}

// skew compares a clock with the local one. The Date header has a resolution of one second.
func (x *examination) skew(what string, r response) {
	switch d := r.skew(); {
	case d > skewMost:
		x.fault(what, "its clock and the local clock differ by "+age(d), "synchronize the clocks (NTP): signatures of approvals tolerate a difference of "+age(skewMost))
	case d > 3*time.Second:
		x.note(what, "its clock and the local clock differ by "+age(d))
	}
}

// read is [examination.look] at the front door. A missing response is a fault.
func (x *examination) read(ctx context.Context, about string, q request, v any) bool {
	_, err := x.look(ctx, x.c, q, v)
	if err != nil {
		x.fault(about, oneLine(err.Error()), "check the log of the front door")
	}
	return err == nil
}

// look sends the request, decodes the response into v, and returns the time of the response.
func (x *examination) look(ctx context.Context, c *client, q request, v any) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorWait)
	defer cancel()
	r := response{asked: x.now()}
	resp, err := c.do(ctx, q)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	r.came = x.now()
	if r.date, err = http.ParseTime(resp.Header.Get("Date")); err != nil {
		r.date = r.came // a proxy removed the header
	}
	_, err = c.decode(ctx, resp, v)
	return r, err
}
