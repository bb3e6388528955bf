package episode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/kit/bom"
	"github.com/callyard/callyard/pkg/schema"
)

// Task is one task of an environment.
type Task struct {
	// ID is unique in the environment. Split is the split of the task, Index its position in
	// the split.
	ID    string
	Split string
	Index int
	// Expected lists the names of the tools that should be called. Labels lists the calls that
	// solve the task.
	Expected []string
	Labels   []eval.LabelledCall
	// MaxRisk is the highest allowed risk level of a call. 0 means no limit.
	MaxRisk int
	// Members holds all members of the line, for templates and conditions.
	Members map[string]any
}

// hidden lists the members of a task that would reveal its solution to a model.
var hidden = []string{"expected", "labels", "answer", "max_risk"}

// Public returns the members of the task that are visible to a trainer, with id, split and index.
func (t *Task) Public() map[string]any {
	out := maps.Clone(t.Members)
	for _, name := range hidden {
		delete(out, name)
	}
	out["id"], out["split"], out["index"] = t.ID, t.Split, t.Index
	return out
}

// Split is a split of the tasks of an environment.
type Split struct {
	Name string `json:"name"`
	// Type is "train", "validation" or "test".
	Type string `json:"type"`
}

// tasks holds the tasks of an environment.
type tasks struct {
	splits []Split
	of     map[string][]*Task
	byID   map[string]*Task
}

const (
	maxTasksFile = 1 << 30
	defaultSplit = "train"
)

// readTasks reads a tasks file.
func readTasks(path string) (*tasks, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxTasksFile {
		err = fmt.Errorf("the file has more than %d bytes", maxTasksFile)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, &config.Faults{List: []config.Fault{{Where: path, Message: "cannot be read: " + err.Error() + "."}}}
	}
	return parseTasks(path, text)
}

// parseTasks parses tasks. The error lists every fault with its line, up to 100.
func parseTasks(path string, text []byte) (*tasks, error) {
	t := &tasks{of: make(map[string][]*Task), byID: make(map[string]*Task)}
	var faults []config.Fault
	n := 0
	for line := range bytes.Lines(bom.Trim(text)) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := t.add(line); err != nil && len(faults) < 100 {
			faults = append(faults, config.Fault{Where: fmt.Sprintf("%s:%d", path, n), Message: err.Error() + "."})
		}
	}
	if len(t.byID) == 0 && len(faults) == 0 {
		faults = append(faults, config.Fault{Where: path, Message: "has no task; write one on each line, as a JSON object."})
	}
	if len(faults) > 0 {
		return nil, &config.Faults{List: faults}
	}
	return t, nil
}

// add parses and adds the task of a line.
func (t *tasks) add(line []byte) error {
	var one struct {
		Split    string              `json:"split"`
		Expected []string            `json:"expected"`
		Labels   []eval.LabelledCall `json:"labels"`
		MaxRisk  int                 `json:"max_risk"`
	}
	var members map[string]any
	in := json.NewDecoder(bytes.NewReader(line))
	in.UseNumber()
	if err := in.Decode(&members); err != nil || members == nil {
		return fmt.Errorf("is not a JSON object on one line")
	}
	if err := json.Unmarshal(line, &one); err != nil {
		return fmt.Errorf("is not a task: %w", eval.PlainFault(err))
	}
	id, err := taskID(members["id"])
	if err != nil {
		return err
	}
	if err := checkLabels(one.Expected, one.Labels); err != nil {
		return err
	}
	if one.MaxRisk < 0 {
		return fmt.Errorf("has a negative max_risk")
	}
	one.Split = cmp.Or(one.Split, defaultSplit)
	if strings.ContainsAny(one.Split, "/ ") {
		return fmt.Errorf("has a split with a space or slash in its name")
	}
	list := t.of[one.Split]
	id = cmp.Or(id, fmt.Sprintf("%s-%d", one.Split, len(list)))
	if t.byID[id] != nil {
		return fmt.Errorf("has the id %q of an earlier task", id)
	}
	if len(one.Expected) == 0 {
		for i := range one.Labels {
			if name := one.Labels[i].Name; !slices.Contains(one.Expected, name) {
				one.Expected = append(one.Expected, name)
			}
		}
	}
	made := &Task{ID: id, Split: one.Split, Index: len(list), Expected: one.Expected, Labels: one.Labels, MaxRisk: one.MaxRisk, Members: plain(members).(map[string]any)}
	if len(list) == 0 {
		t.splits = append(t.splits, Split{Name: one.Split, Type: splitType(one.Split)})
	}
	t.of[one.Split], t.byID[id] = append(list, made), made
	return nil
}

// taskID returns the id of a task, which is a text or, as in many published data sets, a number.
func taskID(member any) (string, error) {
	switch id := member.(type) {
	case nil:
		return "", nil
	case string:
		return id, nil
	case json.Number:
		return id.String(), nil
	}
	return "", fmt.Errorf("has an id that is neither a text nor a number")
}

// checkLabels returns an error for a solution that no answer can match: a tool without a name, or a
// call whose arguments are not an object. A misspelled member is such a case.
func checkLabels(expected []string, labels []eval.LabelledCall) error {
	if slices.Contains(expected, "") {
		return fmt.Errorf("has an empty name in expected")
	}
	for i := range labels {
		arguments := bytes.TrimSpace(labels[i].Arguments)
		switch {
		case labels[i].Name == "":
			return fmt.Errorf("has a call without a name in labels (the call %d)", i+1)
		case len(arguments) > 0 && arguments[0] != '{' && string(arguments) != "null":
			return fmt.Errorf("has a call in labels whose arguments are no object (the call %d)", i+1)
		}
	}
	return nil
}

// plain replaces numbers with int64 or float64, which templates and CEL support.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}

// splitType returns the type of a split in the Open Reward Standard.
func splitType(name string) string {
	switch {
	case strings.HasPrefix(name, "test"), strings.HasPrefix(name, "held"):
		return "test"
	case strings.HasPrefix(name, "val"), strings.HasPrefix(name, "dev"):
		return "validation"
	}
	return "train"
}

// Splits returns the splits of the environment, in the order of its tasks.
func (e *Environment) Splits() []Split { return e.tasks.splits }

// Tasks returns the tasks of a split. The error is of KindNotFound for an unknown split.
func (e *Environment) Tasks(split string) ([]*Task, error) {
	list := e.tasks.of[split]
	if list == nil {
		return nil, schema.Errorf(schema.KindNotFound, "The environment %q has no split %q.", e.name, split)
	}
	return list, nil
}

// Task returns the task at an index of a split. A negative index counts from the end. The error is
// of KindNotFound if there is no such task.
func (e *Environment) Task(split string, index int) (*Task, error) {
	list, err := e.Tasks(split)
	if err != nil {
		return nil, err
	}
	at := index
	if at < 0 {
		at += len(list)
	}
	if at < 0 || at >= len(list) {
		return nil, schema.Errorf(schema.KindNotFound, "The split %q of the environment %q has %d tasks, and none at %d.", split, e.name, len(list), index)
	}
	return list[at], nil
}

// TaskByID returns the task with that id. The error is of KindNotFound.
func (e *Environment) TaskByID(id string) (*Task, error) {
	if t := e.tasks.byID[id]; t != nil {
		return t, nil
	}
	return nil, schema.Errorf(schema.KindNotFound, "The environment %q has no task %q.", e.name, id)
}

// promptOf returns the first observation of a task.
func (e *Environment) promptOf(t *Task) (string, error) {
	if e.prompt == nil {
		for _, name := range []string{"prompt", "question"} {
			if text, ok := t.Members[name].(string); ok {
				return text, nil
			}
		}
		return "", nil
	}
	var b strings.Builder
	if err := e.prompt.Execute(&b, t.Members); err != nil {
		return "", schema.Errorf(schema.KindInternal, "The prompt of the task %q cannot be made: %w", t.ID, err)
	}
	return b.String(), nil
}

// noValue is what a template writes for a member that is missing or null.
const noValue = "<no value>"

// checkPrompts returns an error if the prompt of a task cannot be made, or reads noValue: usually a
// member is misspelled, and a model would be trained on a prompt without its question.
func (e *Environment) checkPrompts() error {
	for _, split := range e.tasks.splits {
		for _, t := range e.tasks.of[split.Name] {
			text, err := e.promptOf(t)
			if err != nil {
				return &keyError{"prompt", fmt.Errorf("%w.", err)}
			}
			if e.prompt != nil && strings.Contains(text, noValue) && !strings.Contains(fmt.Sprint(e.Prompt, t.Members), noValue) {
				return &keyError{"prompt", fmt.Errorf("uses a member that the task %q does not have; add it to the task, or put it between {{if}} and {{end}}.", t.ID)}
			}
		}
	}
	return nil
}
