package episode

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/reward"
	"github.com/callyard/callyard/pkg/risk"
)

// Isolation levels of an episode.
const (
	// IsolationShared isolates nothing. Only tools that are read-only by their annotations are
	// offered.
	IsolationShared = "shared"
	// IsolationSession gives each episode a separate session at servers that keep state by
	// session: the built-in ones, those of Go programs, and remote ones with session ids. Other
	// servers are rejected.
	IsolationSession = "session"
	// IsolationProcess gives each episode a process of each server, on a fresh copy of the state
	// directory.
	IsolationProcess = "process"
	// IsolationSandbox gives each episode a container of each server, on a fresh copy of the
	// state directory.
	IsolationSandbox = "sandbox"
)

// Responses to calls that the policy holds.
const (
	ConfirmDeny     = "deny"     // deny the call at once
	ConfirmAllow    = "allow"    // confirm the call, if its caller may do that
	ConfirmSimulate = "simulate" // do not run the call, but return a result that claims success
)

// File is the environments file.
type File struct {
	// Transcripts is the directory for the transcripts of episodes. If empty, none are kept.
	Transcripts string `yaml:"transcripts"`
	// Environments holds the environments by name.
	Environments map[string]*Environment `yaml:"environments"`
}

// Environment is one environment.
type Environment struct {
	// Description is shown to trainers.
	Description string `yaml:"description"`
	// Tools lists patterns SERVER/TOOL of the tools that an episode may use. They match like
	// those of policies.
	Tools []string `yaml:"tools"`
	// Isolation is the isolation level of episodes. The default is IsolationSession.
	Isolation string `yaml:"isolation"`
	State     State  `yaml:"state"`
	// Reset is called at the start of an episode, before its first observation.
	Reset Hook `yaml:"reset"`
	// TasksFile names a file with one JSON task per line.
	TasksFile string `yaml:"tasks_file"`
	// Prompt is the text/template of the first observation. Its data are the members of the
	// task. The default is the task's prompt or question.
	Prompt string `yaml:"prompt"`
	Reward Reward `yaml:"reward"`
	// Success is a CEL condition that the term success rewards.
	Success string `yaml:"success"`
	// FinishTool is the name of the tool that ends an episode with an answer.
	FinishTool string `yaml:"finish_tool"`
	// Confirm is the response to held calls. The default is ConfirmDeny.
	Confirm string `yaml:"confirm"`
	// Clock is the time, in RFC 3339, that processes of episodes get in CALLYARD_CLOCK. With
	// isolation session, each call carries it. It does not advance.
	Clock  string `yaml:"clock"`
	Limits Limits `yaml:"limits"`

	name   string
	tasks  *tasks
	prompt *template.Template
	scorer *reward.Scorer
	check  *condition
}

// State configures the state of an episode.
type State struct {
	// Dir is copied for each episode, with isolation process or sandbox.
	Dir string `yaml:"dir"`
	// Seed makes each process get the seed of its episode in CALLYARD_SEED, so no process can
	// be started in advance. With isolation session, each call carries the seed.
	Seed bool `yaml:"seed"`
	// Warm is the number of server processes or containers that are kept ready. Episodes is the
	// maximum number at once.
	Warm     int `yaml:"warm"`
	Episodes int `yaml:"episodes"`
	// Tool is the SERVER/TOOL whose result is the state of an episode, instead of the files in
	// its directory. Arguments are its arguments.
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"arguments"`
}

// Hook is a call that the environment makes itself.
type Hook struct {
	Tool      string         `yaml:"tool"` // SERVER/TOOL
	Arguments map[string]any `yaml:"arguments"`
}

// Reward configures the reward of an episode.
type Reward struct {
	// Preset selects the constants of the terms selection and format.
	Preset string `yaml:"preset"`
	// Weights holds the weights of terms.
	Weights reward.Weights `yaml:"weights"`
}

// Limits are the limits of an episode, and of the number of episodes.
type Limits struct {
	Steps    int           `yaml:"steps"`     // tool calls, including refused ones
	Time     time.Duration `yaml:"time"`      // from the first observation to the last step
	CallTime time.Duration `yaml:"call_time"` // of one call
	Idle     time.Duration `yaml:"idle"`      // time without a request after which an episode is closed
	Episodes int           `yaml:"episodes"`  // maximum number at once
}

// Defaults of an environment.
const (
	defaultFinish   = "finish"
	defaultSteps    = 12
	defaultTime     = time.Minute
	defaultCallTime = 30 * time.Second
	defaultIdle     = 15 * time.Minute
	defaultEpisodes = 4096
	defaultProcs    = 64
)

var environmentName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// reserved lists names that are paths of a protocol, so environments cannot have them.
var reserved = []string{
	"health", "metadata", "schema", "mcp", "ws", "reset", "step", "state", "rewards", "list_environments", "create", "create_session", "delete", "delete_session", "ping",
	"seed_session", "verify", "snapshot", "metrics", "splits", "tasks", "num_tasks", "task", "task_range", "tools", "task_tools", "prompt", "call", "web", "docs", "close",
}

// Validate returns the settings that cannot be honoured; see package config.
func (f File) Validate() []config.Fault {
	var faults config.Collector
	if len(f.Environments) == 0 {
		faults.Addf("environments", "has no environment; add one below it.")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Environments)) {
		if !environmentName.MatchString(name) || slices.Contains(reserved, name) {
			faults.Addf("environments."+name, "cannot be the name of an environment: use small letters, digits, - and _, and no word of a protocol such as tasks.")
		}
	}
	return faults
}

// Validate returns the settings that cannot be honoured; see package config.
func (e Environment) Validate() []config.Fault {
	var faults config.Collector
	choice(&faults, "isolation", e.Isolation, IsolationShared, IsolationSession, IsolationProcess, IsolationSandbox)
	choice(&faults, "confirm", e.Confirm, ConfirmDeny, ConfirmAllow, ConfirmSimulate)
	if len(e.Tools) == 0 {
		faults.Addf("tools", "is missing; list the tools as SERVER/TOOL, such as files/* for all of a server.")
	}
	for i, pattern := range e.Tools {
		if _, _, ok := strings.Cut(pattern, "/"); !ok {
			faults.Addf(fmt.Sprintf("tools[%d]", i), "must have the form SERVER/TOOL, such as files/*.")
		}
	}
	for _, h := range []struct{ key, tool string }{{"state.tool", e.State.Tool}, {"reset.tool", e.Reset.Tool}} {
		if h.tool != "" && strings.Count(h.tool, "/") != 1 {
			faults.Addf(h.key, "must have the form SERVER/TOOL.")
		}
	}
	if e.TasksFile == "" {
		faults.Addf("tasks_file", "is missing; name a file with one task on each line.")
	}
	if e.State.Dir != "" && !e.OwnFiles() {
		faults.Addf("state.dir", "counts with isolation: process or sandbox only; set one of them, or remove the directory.")
	}
	if e.State.Seed && e.State.Warm > 0 {
		faults.Addf("state.seed", "has each process started with the seed of its episode, so that none can be ready before; remove state.warm.")
	}
	if e.State.Seed && e.Isolation == IsolationShared {
		faults.Addf("state.seed", "does not count with isolation: shared; set another one, or remove it.")
	}
	if e.Clock != "" && e.Isolation == IsolationShared {
		faults.Addf("clock", "does not count with isolation: shared; set another one, or remove it.")
	}
	if _, err := time.Parse(time.RFC3339, e.Clock); e.Clock != "" && err != nil {
		faults.Addf("clock", "must be a time such as 2026-01-31T12:00:00Z.")
	}
	if _, err := e.newScorer(); err != nil {
		faults.Addf("reward", "%s.", err)
	}
	if _, err := e.newPrompt(); err != nil {
		faults.Addf("prompt", "cannot be read: %v.", err)
	}
	if e.Success != "" {
		if _, err := compile(e.Success); err != nil {
			faults.Addf("success", "%v", err)
		}
	}
	for _, n := range []struct {
		key  string
		good bool
	}{
		{"limits.steps", e.Limits.Steps >= 0}, {"limits.time", e.Limits.Time >= 0}, {"limits.call_time", e.Limits.CallTime >= 0}, {"limits.idle", e.Limits.Idle >= 0},
		{"limits.episodes", e.Limits.Episodes >= 0}, {"state.warm", e.State.Warm >= 0}, {"state.episodes", e.State.Episodes >= 0},
	} {
		faults.Positive(n.key, n.good)
	}
	return faults
}

func choice(faults *config.Collector, key, value string, allowed ...string) {
	if value != "" && !slices.Contains(allowed, value) {
		faults.Addf(key, "must be %s or %s.", strings.Join(allowed[:len(allowed)-1], ", "), allowed[len(allowed)-1])
	}
}

func (e *Environment) newScorer() (*reward.Scorer, error) {
	return reward.New(e.Reward.Preset, e.Reward.Weights)
}

func (e *Environment) newPrompt() (*template.Template, error) {
	return template.New("prompt").Option("missingkey=zero").Parse(e.Prompt)
}

// relativeTo returns a path in a file in dir. An empty path stays empty.
func relativeTo(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Load reads an environments file and the tasks files that it names. Relative paths in it are
// relative to its directory. The error is a *config.Faults that lists every fault with its file and
// line.
func Load(path string) (*File, error) {
	var f File
	places, err := config.Load(config.Source{Path: path}, &f)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	f.Transcripts = relativeTo(dir, f.Transcripts)
	var faults []config.Fault
	for _, name := range slices.Sorted(maps.Keys(f.Environments)) {
		e := f.Environments[name]
		e.name = name
		if err := e.prepare(dir); err != nil {
			faults = append(faults, faultsOf(err, name, places)...)
		}
	}
	if len(faults) > 0 {
		return nil, &config.Faults{List: faults}
	}
	return &f, nil
}

// faultsOf converts an error of an environment to faults with locations.
func faultsOf(err error, name string, places config.Places) []config.Fault {
	if file, ok := errors.AsType[*config.Faults](err); ok {
		return file.List
	}
	path := "environments." + name
	if at, ok := errors.AsType[*keyError](err); ok {
		path += "." + at.key
	}
	return []config.Fault{{Path: path, Where: places.Of(path), Message: err.Error()}}
}

// keyError is an error in the value of a key of an environment.
type keyError struct {
	key string
	err error
}

// Error implements error.
func (e *keyError) Error() string { return e.err.Error() }

// checkDir returns an error if the state directory cannot be copied because it is no directory.
func (s *State) checkDir() error {
	info, err := os.Stat(s.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &keyError{"state.dir", fmt.Errorf("%s does not exist; correct the path or create it.", s.Dir)}
	case err != nil:
		return &keyError{"state.dir", fmt.Errorf("cannot be read: %w.", err)}
	case !info.IsDir():
		return &keyError{"state.dir", fmt.Errorf("%s is no directory.", s.Dir)}
	}
	return nil
}

// prepare sets the defaults and reads the files that the environment names.
func (e *Environment) prepare(dir string) (err error) {
	e.Isolation = cmp.Or(e.Isolation, IsolationSession)
	e.Confirm = cmp.Or(e.Confirm, ConfirmDeny)
	e.FinishTool = cmp.Or(e.FinishTool, defaultFinish)
	e.Limits.Steps = cmp.Or(e.Limits.Steps, defaultSteps)
	e.Limits.Time = cmp.Or(e.Limits.Time, defaultTime)
	e.Limits.CallTime = cmp.Or(e.Limits.CallTime, defaultCallTime)
	e.Limits.Idle = cmp.Or(e.Limits.Idle, defaultIdle)
	e.Limits.Episodes = cmp.Or(e.Limits.Episodes, defaultEpisodes)
	e.State.Episodes = cmp.Or(e.State.Episodes, defaultProcs)
	e.State.Dir, e.TasksFile = relativeTo(dir, e.State.Dir), relativeTo(dir, e.TasksFile)
	if e.State.Dir != "" {
		if err := e.State.checkDir(); err != nil {
			return err
		}
	}
	if e.scorer, err = e.newScorer(); err != nil {
		return err
	}
	if e.Prompt != "" {
		if e.prompt, err = e.newPrompt(); err != nil {
			return err
		}
	}
	if e.Success != "" {
		if e.check, err = compile(e.Success); err != nil {
			return err
		}
	}
	if e.scorer.Weight(reward.Success) != 0 && e.check == nil {
		return errors.New("weighs the term success and has no success condition; add success.")
	}
	if e.scorer.Weight(reward.State) != 0 && e.State.Dir == "" && e.State.Tool == "" {
		return errors.New("weighs the term state and says not where the state is; set state.dir or state.tool.")
	}
	if e.tasks, err = readTasks(e.TasksFile); err != nil {
		return err
	}
	return e.checkPrompts()
}

// OwnFiles reports whether each episode has separate processes with their own directory.
func (e *Environment) OwnFiles() bool {
	return e.Isolation == IsolationProcess || e.Isolation == IsolationSandbox
}

// Name returns the name of the environment.
func (e *Environment) Name() string { return e.name }

// Uses reports whether the environment may offer tools of the server.
func (e *Environment) Uses(server string) bool {
	for _, pattern := range e.Tools {
		if of, _, _ := strings.Cut(pattern, "/"); risk.MatchPattern(of, server) {
			return true
		}
	}
	return false
}

// Sorted returns the environments, sorted by name.
func (f *File) Sorted() []*Environment {
	return slices.SortedFunc(maps.Values(f.Environments), func(a, b *Environment) int { return strings.Compare(a.name, b.name) })
}
