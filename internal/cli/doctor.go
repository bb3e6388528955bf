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

// doctorCommand looks at a running system and says what is wrong with it.
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
	flags.StringVar(&o.approver, "approver-url", "", "address of the approver (CALLYARD_APPROVER_URL); without it approvals are checked only if an approver answers at "+defaultApproverURL)
	flags.StringVar(&o.approverKey, "approver-key", "", "API key for the approver (CALLYARD_APPROVER_KEY; default: the key of the front door)")
	flags.StringVar(&o.nats, "nats", "", "address of NATS (CALLYARD_NATS_URL), to check that it requires credentials; without it NATS is checked only if it answers at "+defaultNATS)
	durationVar(flags, &o.held, "held", time.Hour, "report approvals that wait longer than this as faults")
	cmd.RunE = withClient(func(ctx context.Context, c *client, _ []string) error {
		if o.held <= 0 {
			return fail(exitUsage, "--held must be longer than 0s.")
		}
		o.named = cmp.Or(o.approver, os.Getenv("CALLYARD_APPROVER_URL"))
		o.nats = cmp.Or(o.nats, os.Getenv("CALLYARD_NATS_URL"))
		x := examination{c: c, o: o, out: c.out, now: time.Now}
		c.out.format = formatTable // what is refused is a finding, and not printed as it came
		var err error
		if x.approver, err = c.approver(o.named); err != nil {
			return err
		}
		if x.approver.key, err = apiKey(cmp.Or(o.approverKey, os.Getenv("CALLYARD_APPROVER_KEY"), c.key)); err != nil {
			return err
		}
		if err := x.approver.connect(); err != nil {
			return err
		}
		x.all(ctx)
		if err := context.Cause(ctx); err != nil {
			return fail(exitInterrupted, "Interrupted.")
		}
		return x.tell()
	})
	return cmd
}

// doctorOptions is what the flags say.
type doctorOptions struct {
	approver, approverKey string
	named                 string // the approver that somebody named, "" when nobody did
	nats                  string // likewise
	held                  time.Duration
}

const (
	// skewMost is how wrong the clocks of workers may be: a warrant that a process
	// signed is valid that long before its time.
	skewMost = 30 * time.Second
	// restartsMany is more often than a sound server is started again.
	restartsMany = 5
	// doctorWait bounds one question. A system that is ill answers late or never.
	doctorWait = 10 * time.Second
	// shownMost is the number of the same kind that are named one by one.
	shownMost = 20
)

// defaultNATS is where NATS is looked for when nobody says where it is.
const defaultNATS = "nats://127.0.0.1:4222"

// examination is one look at a system.
type examination struct {
	c, approver *client
	o           doctorOptions
	out         screen
	now         func() time.Time
	findings    []finding
	clock       time.Time // of the front door, when it was asked
}

// all looks at everything. What cannot be known without a front door is left out
// when there is none.
func (x *examination) all(ctx context.Context) {
	if !x.frontDoor(ctx) {
		return
	}
	x.nats(ctx)
	x.workers(ctx)
	x.servers(ctx)
	x.configuration(ctx)
	x.executions(ctx)
	x.approvals(ctx)
}

// frontDoor says whether there is any sense in asking more.
func (x *examination) frontDoor(ctx context.Context) bool {
	const at = "front door"
	var version callyard.Version
	date, err := x.look(ctx, x.c, x.c.api.GetVersion, &version)
	if err != nil {
		if exitCode(err) == exitRefused {
			x.fault(at, oneLine(err.Error()), "check that "+x.c.base+" is its address, and pass an API key that is valid there with --key, CALLYARD_KEY or CALLYARD_KEY_FILE")
		} else {
			x.fault(at, oneLine(err.Error()), "check that the process is running (if not, the last line of its log has the reason) and that "+x.c.base+" is its address")
		}
		return false
	}
	x.clock = date
	x.ok(at, version.Version+", up for "+age(date.Sub(version.Started)))
	x.ready(ctx, x.c, at)
	x.skew(at, date)
	x.losses(ctx)
	return true
}

// ready reads /readyz, which says whether NATS is there and why not.
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
	case strings.Contains(lower, "nats"):
		fix = "start nats-server, or repair the network between them; it reconnects automatically. If NATS is running, check nats.url and the credentials of its user"
	case strings.Contains(lower, "redis"):
		fix = "start Redis, or check redis.url; without Redis no new approvals can be opened"
	}
	x.fault(what, said, fix)
}

// skew compares a clock with the one here. The Date of an answer counts whole seconds.
func (x *examination) skew(what string, date time.Time) {
	switch d := x.now().Sub(date); {
	case d.Abs() > skewMost:
		x.fault(what, "its clock and the local clock differ by "+age(d.Abs()), "synchronize the clocks (NTP): signatures of approvals tolerate a difference of "+age(skewMost))
	case d.Abs() > 3*time.Second:
		x.note(what, "its clock and the local clock differ by "+age(d.Abs()))
	}
}

// read is look for what the front door has to know. An answer that does not come is a
// fault.
func (x *examination) read(ctx context.Context, about string, q request, v any) bool {
	_, err := x.look(ctx, x.c, q, v)
	if err != nil {
		x.fault(about, oneLine(err.Error()), "check the log of the front door")
	}
	return err == nil
}

// look asks for a report and returns the time on the clock of whoever answered.
func (x *examination) look(ctx context.Context, c *client, q request, v any) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorWait)
	defer cancel()
	resp, err := c.do(ctx, q)
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close()
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		date = x.now() // a proxy took it away
	}
	_, err = c.decode(ctx, resp, v)
	return date, err
}
