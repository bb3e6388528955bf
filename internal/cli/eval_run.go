package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/clients/go/batchfile"
	"github.com/callyard/callyard/internal/eval/dataset"
	"github.com/callyard/callyard/internal/eval/rundir"
	"github.com/callyard/callyard/internal/eval/stage"
)

// Values of --execute.
const (
	executeNone  = "none"
	executeLabel = "label"
	executeModel = "model"
	executeAll   = "all"
)

// evalRun holds the command line of `callyard eval run`.
type evalRun struct {
	o       rundir.Options
	m       evalModel
	execute string
	servers []string
	target  stage.Target
	batch   batchfile.Options
}

func evalRunCommand() *cobra.Command {
	var r evalRun
	cmd := &cobra.Command{
		Use:   "run RUN_DIR",
		Short: "Ask a model the questions of a data set, and run calls",
		Long: "With --model, run asks the model the questions of a data set and keeps its answers in RUN_DIR, where `callyard eval score` finds them. It does not ask again for answers that it already has.\n\n" +
			"With --execute, run sends calls to Callyard as a batch, and counts those that reach their tool and those that the tool answers without an error: the calls that the data set expects (label), those of the answers in RUN_DIR (model), or both (all). " +
			"`callyard eval score` then compares their results. Of an answer, only calls of tools that its question offers are sent. Without --model, the default is label: it shows whether the fleet can run the data set at all.\n\n" +
			"--reset and --state are for servers with a state, such as that of tau2: before the calls of each sample the tool --reset is called, and after them the tool --state, whose result is the state. Such a server needs \"sessions\": 1 and \"inFlight\": 1, so that calls run one after the other. In a conversation of several turns, such as multi_turn_base of BFCL, --state is called after each turn, and with --model the calls of the model run at Callyard while it is asked.\n\n" +
			"After any interruption the same command continues: no call is sent twice. When all calls have a result, it runs nothing again and needs no Callyard.\n\n" +
			"Exit code: 0 every call ended without an error, 1 some calls failed or a tool reported an error, 3 all calls that did not succeed were denied or Callyard refused the batch, 4 the model or Callyard was not reachable.",
		Example: "  callyard eval run run/ --data bfcl:bfcl_eval/data --set live_multiple --model ollama:qwen3 --trials 4\n" +
			"  callyard eval run run/ --data mcptoolbench:filesystem_0723_single.json --execute label --server filesystem=files\n" +
			"  callyard eval run run/ --data tau2:airline --responses answers.jsonl --execute all --server airline --reset airline/reset --state airline/state",
		Args: takes(1, 1),
	}
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		r.o.Dir = args[0]
		return r.run(ctx, c)
	})
	f := cmd.Flags()
	f.StringVar(&r.o.Data, "data", "", "data set FORMAT:PATH; the formats are "+strings.Join(dataset.Formats(), ", ")+" (default: the samples in RUN_DIR)")
	f.StringArrayVar(&r.o.Part.Sets, "set", nil, "set of a data set with several; repeatable (default: all with one turn)")
	f.IntVar(&r.o.Part.Limit, "limit", 0, "maximum number of samples of each set")
	f.StringVar(&r.o.Responses, "responses", "", "file of responses whose calls are run, JSON Lines, or transcript, or folder of transcripts (default: those in RUN_DIR)")
	f.StringVar(&r.execute, "execute", "", "calls to run: label, model, all, or none (default: none with --model, else label)")
	r.m.flags(f)
	f.StringArrayVar(&r.servers, "server", nil, "NAME=ID: the server NAME of the data set is ID at Callyard; ID alone for calls that name no server; repeatable")
	f.StringVar(&r.target.Reset, "reset", "", "tool SERVER/TOOL that resets the state before the calls of each sample")
	f.StringVar(&r.target.State, "state", "", "tool SERVER/TOOL whose result is the state after the calls of each sample")
	f.BoolVar(&r.batch.Cancel, "cancel", false, "cancel the batch that this command started: no further calls start")
	f.BoolVar(&r.batch.Restart, "new", false, "start a new batch even if an earlier run left results; its calls run again")
	durationVar(f, &r.batch.GiveUp, "give-up", batchfile.DefaultGiveUp, "time to retry when Callyard is not reachable or busy")
	offer(cmd, "execute", executeLabel, executeModel, executeAll, executeNone)
	offer(cmd, "calls", "api", "text")
	return cmd
}

// run queries the model and runs calls, as requested by the flags.
func (r *evalRun) run(ctx context.Context, c *client) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.m.name != "" {
		if r.target.Reset != "" || r.execute != "" && r.execute != executeNone { // check before paying for a model
			if err := r.readyToExecute(ctx, c); err != nil {
				return err
			}
		}
		if r.target.Reset != "" {
			r.m.options.Fabric = &evalFabric{c, r.target}
		}
		if err := r.m.ask(ctx, c, r.o); err != nil {
			return err
		}
	}
	var ran executions
	var err error
	if r.execute == executeLabel || r.execute == executeAll {
		if ran.Labels, err = r.carryOut(ctx, c, rundir.PlanLabels); err != nil {
			return err
		}
	}
	if r.execute == executeModel || r.execute == executeAll {
		if ran.Answers, err = r.carryOut(ctx, c, rundir.PlanAnswers); err != nil {
			return err
		}
	}
	return ran.show(c.out)
}

// check rejects conflicting flags and derives settings from others.
func (r *evalRun) check() error {
	if !slices.Contains([]string{"", executeNone, executeLabel, executeModel, executeAll}, r.execute) || r.execute == executeNone && r.m.name == "" {
		return fail(exitUsage, "--execute must be label, model or all, or none with --model.")
	}
	if r.execute == "" && r.m.name == "" {
		r.execute = executeLabel
	}
	if r.o.Responses != "" && (r.m.name != "" || r.execute != executeModel && r.execute != executeAll) {
		return fail(exitUsage, "--responses needs --execute model or all, and cannot be used with --model.")
	}
	for flag, tool := range map[string]string{"--reset": r.target.Reset, "--state": r.target.State} {
		if server, name, _ := strings.Cut(tool, "/"); tool != "" && (server == "" || name == "") {
			return fail(exitUsage, "%s must look like SERVER/TOOL.", flag)
		}
	}
	if r.batch.GiveUp <= 0 {
		r.batch.GiveUp = -1 // give up at the first failure
	}
	var err error
	r.target.Servers, err = serverNames(r.servers)
	return err
}

// carryOut runs the calls of a plan, unless their results already exist.
func (r *evalRun) carryOut(ctx context.Context, c *client, planned func(rundir.Options, stage.Target) (*rundir.Plan, error)) (*stage.Execution, error) {
	plan, err := planned(r.o, r.target)
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	if plan.Done != nil && !r.batch.Restart && !r.batch.Cancel {
		return plan.Done, nil
	}
	if !r.batch.Cancel {
		if err := r.serversReady(ctx, c, plan.Servers()); err != nil {
			return nil, err
		}
	}
	return executePlan(ctx, c, plan, r.batch)
}

// readyToExecute checks the servers of the calls that are known before the model is asked.
func (r *evalRun) readyToExecute(ctx context.Context, c *client) error {
	var called []string
	if r.execute == executeLabel || r.execute == executeAll {
		plan, err := rundir.PlanLabels(r.o, r.target)
		if err != nil {
			return fail(exitUsage, "%w", err)
		}
		called = plan.Servers()
	}
	return r.serversReady(ctx, c, called)
}

// serversReady rejects servers of --server, and servers of calls, that Callyard does not have.
// Their calls would wait forever for a worker.
func (r *evalRun) serversReady(ctx context.Context, c *client, called []string) error {
	mapped := make(map[string]bool, len(r.target.Servers))
	for _, name := range slices.Sorted(maps.Keys(r.target.Servers)) {
		id := r.target.Servers[name]
		mapped[id] = true
		if err := serverExists(ctx, c, id, "--server "+strings.TrimPrefix(name+"="+id, "=")); err != nil {
			return err
		}
	}
	if err := r.serial(ctx, c); err != nil {
		return err
	}
	for _, id := range called {
		if mapped[id] || strings.HasPrefix(r.target.Reset, id+"/") || strings.HasPrefix(r.target.State, id+"/") {
			continue // checked above
		}
		if err := serverExists(ctx, c, id, "The data set has calls of the server \""+id+"\". Choose its server at Callyard with --server "+id+"=ID"); err != nil {
			return err
		}
	}
	return nil
}

// serverExists returns an error that begins with the given words if Callyard does not have a server.
func serverExists(ctx context.Context, c *client, id, words string) error {
	return suggesting(func(ctx context.Context, c *client, args []string) error {
		_, err := c.report(ctx, with(c.api.GetServer, args[0]), new(struct{}))
		if isNotFound(err) {
			return &exitError{code: exitCode(err), notFound: true, err: fmt.Errorf("%s: %w", oneLine(words), err)}
		}
		return err
	})(ctx, c, []string{id})
}

// serial rejects servers with a state that run several calls at the same time, because the calls of
// different samples would interfere.
func (r *evalRun) serial(ctx context.Context, c *client) error {
	for _, tool := range []string{r.target.Reset, r.target.State} {
		id, _, _ := strings.Cut(tool, "/")
		if id == "" {
			continue
		}
		var server struct {
			Slots int `json:"slots"`
		}
		if _, err := c.report(ctx, with(c.api.GetServer, id), &server); err != nil {
			return err
		}
		if server.Slots > 1 {
			return fail(exitUsage, "The server %q runs %d calls at the same time, so that the states of samples would mix. Set \"sessions\": 1 and \"inFlight\": 1 in the servers file, and run one worker with it.", oneLine(id), server.Slots)
		}
	}
	return nil
}

// serverNames parses NAME=ID, or ID alone.
func serverNames(flags []string) (map[string]string, error) {
	names := make(map[string]string, len(flags))
	for _, flag := range flags {
		name, id, ok := strings.Cut(flag, "=")
		if !ok {
			name, id = "", flag
		}
		if id == "" {
			return nil, fail(exitUsage, "--server must look like NAME=ID or ID, and %q does not.", flag)
		}
		names[name] = id
	}
	return names, nil
}
