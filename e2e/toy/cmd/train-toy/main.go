// Command train-toy trains the policies of package toy through `callyard env`, which it starts,
// and writes a page with all curves. It exits with 1 if the policies of GRPO with the whole
// reward did not learn.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/callyard/callyard/e2e/toy"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := train(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "train-toy:", err)
		os.Exit(1)
	}
}

type options struct {
	callyard, out          string
	seeds, questions, runs int
	set                    toy.Settings
}

func train(ctx context.Context) error {
	o := options{set: toy.Defaults()}
	flag.StringVar(&o.callyard, "callyard", "bin/callyard", "the program callyard")
	flag.StringVar(&o.out, "out", "toy-out", "folder of the report")
	flag.IntVar(&o.seeds, "seeds", 5, "seeds for each method and reward")
	flag.IntVar(&o.questions, "questions", 120, "questions for each tool, in both splits")
	flag.IntVar(&o.runs, "parallel", 4, "runs at once")
	flag.IntVar(&o.set.Steps, "steps", o.set.Steps, "steps of each run")
	flag.Parse()
	if err := os.MkdirAll(o.out, 0o755); err != nil { //nolint:gosec // a folder for a report, which has no secret
		return err
	}
	tasks := toy.Tasks(o.questions)
	dir, err := os.MkdirTemp("", "callyard-toy-")
	if err != nil {
		return err
	}
	env, err := start(ctx, o.callyard, dir, tasks)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	report, err := o.all(ctx, env.url, tasks)
	if err = errors.Join(err, env.stop(), os.RemoveAll(dir)); err != nil {
		return err
	}
	report.Version = env.version
	return o.write(report)
}

// all runs every method with every reward and seed.
func (o *options) all(ctx context.Context, url string, tasks []toy.Task) (*toy.Report, error) {
	report := &toy.Report{Settings: o.set, Seeds: o.seeds}
	for i := range tasks {
		if tasks[i].Split == "train" {
			report.Questions++
		} else {
			report.HeldOut++
		}
	}
	var sets []toy.Settings
	for _, reward := range toy.Rewards() {
		for _, method := range toy.Methods() {
			for seed := range o.seeds {
				one := o.set
				one.Method, one.Reward, one.Seed = method, reward, uint64(seed+1)
				sets = append(sets, one)
			}
		}
	}
	report.Curves = make([]*toy.Curve, len(sets))
	faults := make([]error, len(sets))
	began := time.Now()
	gate := make(chan struct{}, max(1, o.runs))
	var work sync.WaitGroup
	for i, set := range sets {
		gate <- struct{}{}
		work.Go(func() {
			defer func() { <-gate }()
			c, err := toy.Train(ctx, url, tasks, set)
			if err != nil {
				faults[i] = fmt.Errorf("%s, reward %s, seed %d: %w", set.Method, set.Reward, set.Seed, err)
				return
			}
			report.Curves[i] = c
			fmt.Printf("%-8s  reward %-9s  seed %d: %.3f -> %.3f\n", set.Method, set.Reward, set.Seed, c.First().Accuracy(), c.Last().Accuracy())
		})
	}
	work.Wait()
	report.Seconds = time.Since(began).Seconds()
	return report, errors.Join(faults...)
}

// write writes the page and the figures, and returns an error if the policies did not learn.
func (o *options) write(report *toy.Report) error {
	figures, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		return err
	}
	var page strings.Builder
	if err := report.Write(&page); err != nil {
		return err
	}
	for name, text := range map[string]string{"report.json": string(figures) + "\n", "report.html": page.String()} {
		if err := os.WriteFile(filepath.Join(o.out, name), []byte(text), 0o644); err != nil { //nolint:gosec // as the folder
			return err
		}
	}
	fmt.Printf("%d runs in %.0f s; the report is %s\n", len(report.Curves), report.Seconds, filepath.Join(o.out, "report.html"))
	return report.Check()
}

// environments is a running `callyard env`.
type environments struct {
	cmd          *exec.Cmd
	log          *os.File
	url, version string
}

var served = regexp.MustCompile(`environments are served at (http://\S+):`)

// start starts the environments in a separate folder.
func start(ctx context.Context, callyard, dir string, tasks []toy.Task) (*environments, error) {
	version, err := exec.CommandContext(ctx, callyard, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("running %s: %w; --callyard names the program", callyard, err)
	}
	lines, err := toy.TasksFile(tasks)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "env.yaml")
	if err := os.WriteFile(file, []byte(toy.EnvironmentsFile), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, toy.TasksName), lines, 0o600); err != nil {
		return nil, err
	}
	e := &environments{}
	e.version, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(version)), "callyard "), "\n")
	if e.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	e.cmd = exec.Command(callyard, "env", "--environments", file, "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0")
	e.cmd.Stderr = e.log
	out, err := e.cmd.StdoutPipe()
	if err == nil {
		err = e.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	lineOut := bufio.NewScanner(out)
	for lineOut.Scan() {
		if m := served.FindStringSubmatch(lineOut.Text()); m != nil {
			e.url = m[1]
			go func() { _, _ = io.Copy(io.Discard, out) }() // it ends with the program
			return e, nil
		}
	}
	text, _ := os.ReadFile(e.log.Name())
	return nil, fmt.Errorf("callyard env did not start: %w\n%s", errors.Join(lineOut.Err(), e.stop()), text)
}

func (e *environments) stop() error {
	_ = e.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	return errors.Join(e.cmd.Wait(), e.log.Close())
}
