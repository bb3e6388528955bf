package toy

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Rewards name the environments by the terms of their reward.
const (
	Full      = "full"      // the tool, the form, and that the call runs
	Selection = "selection" // only the tool
	Format    = "format"    // only the form
)

// EnvironmentsFile is the content of env.yaml. Accuracy is the term success: the right tool was
// called in the right form, and its call ran.
const EnvironmentsFile = `environments:
  full:
    description: The right tool in the right form, whose call runs.
    tools: &tools ["calculator/*", "datetime/*", "units/*", "think/*", "todo/*"]
    tasks_file: tasks.jsonl
    isolation: session
    success: &success 'results.exists(r, r.ok && r.tool == task.tool && r.server == task.server)'
    reward: {weights: {selection: 1, format: 1, execution: 1, success: 1}}
    limits: &limits {steps: 1}
  selection:
    description: The right tool, in any form.
    tools: *tools
    tasks_file: tasks.jsonl
    isolation: session
    reward: {weights: {selection: 1, format: 0}}
    limits: *limits
  format:
    description: The right form, with any tool.
    tools: *tools
    tasks_file: tasks.jsonl
    isolation: session
    reward: {weights: {selection: 0, format: 1}}
    limits: *limits
`

// TasksName is the name of the tasks file that [EnvironmentsFile] reads.
const TasksName = "tasks.jsonl"

// Task is a question with the tool that answers it.
type Task struct {
	ID        string         `json:"id"`
	Split     string         `json:"split"`
	Question  string         `json:"question"`
	Server    string         `json:"server"`
	Tool      string         `json:"tool"`
	Expected  []string       `json:"expected"`
	name      int            // index of the tool in tools
	arguments map[string]any // of the right call
}

// tool is a tool of a built-in server, under the name in its environment.
type tool struct {
	name, server, tool string
	any                map[string]any // arguments that are valid for any question
	questions          []string       // with {…} as a placeholder for a word
	arguments          func(words []string) map[string]any
}

func tools() []tool {
	none := func([]string) map[string]any { return map[string]any{} }
	return []tool{
		{"evaluate", "calculator", "evaluate", map[string]any{"expression": "1 + 1"},
			[]string{"What is {number} plus {number}?", "Compute {number} plus {number}.", "Add {number} and {number} for me.", "What does {number} plus {number} make?"},
			func(w []string) map[string]any { return map[string]any{"expression": w[0] + " + " + w[1]} }},
		{"list_allowed_fns", "calculator", "list_allowed_fns", map[string]any{},
			[]string{"Which functions does the {calculator} know?", "List the functions of the {calculator}.", "Name all functions that the {calculator} supports."}, none},
		{"calculator__help", "calculator", "help", map[string]any{"fn_name": "sqrt"},
			[]string{"How does the function {function} work?", "Explain the function {function}.", "What does the function {function} compute?", "Describe the function {function} to me."},
			func(w []string) map[string]any { return map[string]any{"fn_name": w[0]} }},
		{"now", "datetime", "now", map[string]any{},
			[]string{"What time is it in {city} now?", "Tell me the current time in {city}.", "What is the date in {city} today?"},
			func(w []string) map[string]any { return map[string]any{"timezone_name": w[0]} }},
		{"convert_timezone", "datetime", "convert_timezone", map[string]any{"time_str": "12:00", "source_timezone": "UTC", "target_timezone": "UTC"},
			[]string{"At {clock} in {city}, how late is it in {city}?", "Translate {clock} from {city} to {city} time.", "A meeting is at {clock} in {city}; when is that in {city}?"},
			func(w []string) map[string]any {
				return map[string]any{"time_str": w[0], "source_timezone": w[1], "target_timezone": w[2]}
			}},
		{"convert", "units", "convert", map[string]any{"value": 1, "conversion": "meters_to_feet"},
			[]string{"How many feet are {number} meters?", "Convert {number} meters into feet.", "Express {number} meters in feet."},
			func(w []string) map[string]any {
				return map[string]any{"value": json.Number(w[0]), "conversion": "meters_to_feet"}
			}},
		{"list_conversions", "units", "list_conversions", map[string]any{},
			[]string{"Which conversions of {quantity} are there?", "List the conversions of {quantity}.", "Between which units of {quantity} can you convert?"}, none},
		{"units__help", "units", "help", map[string]any{"fn_name": "meters_to_feet"},
			[]string{"How does the conversion {conversion} work?", "Explain the conversion {conversion}.", "Describe the conversion {conversion} to me."},
			func(w []string) map[string]any { return map[string]any{"fn_name": w[0]} }},
		{"think", "think", "think", map[string]any{"thought_process": "This needs a thought."},
			[]string{"Think about {topic} before you answer.", "Reason step by step about {topic}.", "Reflect on {topic} first."},
			func(w []string) map[string]any { return map[string]any{"thought_process": w[0]} }},
		{"update", "todo", "update", map[string]any{"todos": []string{"[1] something (planned)"}},
			[]string{"Put {topic} on my to-do list.", "Remember {topic} as a task.", "Plan {topic} as the next task."},
			func(w []string) map[string]any {
				return map[string]any{"todos": []string{"[1] " + w[0] + " (planned)"}}
			}},
		{"list", "todo", "list", map[string]any{},
			[]string{"Show my tasks {when}.", "What is on my to-do list {when}?", "Which tasks are still open {when}?"}, none},
	}
}

// word draws a word for a placeholder in a question.
func word(kind string, draw *rand.Rand) string {
	pick := func(words ...string) string { return words[draw.IntN(len(words))] }
	switch kind {
	case "number":
		return fmt.Sprint(draw.IntN(1000))
	case "clock":
		return fmt.Sprintf("%02d:%02d", draw.IntN(24), draw.IntN(60))
	case "calculator":
		return pick("calculator", "evaluator", "arithmetic tool", "expression tool", "pocket calculator")
	case "function":
		return pick("sqrt", "log", "sin", "cos", "factorial", "comb", "sum", "median", "round", "ln")
	case "city":
		return pick("Europe/Berlin", "Asia/Tokyo", "America/Chicago", "Africa/Cairo", "Australia/Sydney", "Europe/Paris", "Asia/Dubai", "America/Lima")
	case "quantity":
		return pick("length", "temperature", "weight", "speed", "energy", "pressure", "volume", "power")
	case "conversion":
		return pick("meters_to_feet", "feet_to_meters", "celsius_to_kelvin", "kelvin_to_celsius", "inches_to_centimeters", "celsius_to_fahrenheit")
	case "when":
		return pick("now", "for today", "for this week", "again", "please", "in order", "at once", "in short")
	}
	return pick("the trip to Rome", "a birthday cake", "the tax return", "the garden fence", "a new bicycle", "the piano lesson", "the quarterly plan", "a broken lamp", "the library books", "the winter tyres")
}

// heldOut is the inverse share of held-out questions: one of this number.
const heldOut = 4

// Tasks returns n questions for each tool, in two splits by the digest of the question. No
// question is in both. The same n gives the same tasks.
func Tasks(n int) []Task {
	draw := rand.New(rand.NewPCG(22, 2026))
	var all []Task
	for i, t := range tools() {
		known := make(map[string]bool)
		for tries := 0; len(known) < n && tries < 100*n; tries++ {
			question, words := fill(t.questions[draw.IntN(len(t.questions))], draw)
			if known[question] {
				continue
			}
			known[question] = true
			split := "train"
			if sum := sha256.Sum256([]byte(question)); sum[0]%heldOut == 0 {
				split = "held-out"
			}
			all = append(all, Task{ID: fmt.Sprintf("q%d", len(all)), Split: split, Question: question, Server: t.server, Tool: t.tool, Expected: []string{t.name},
				name: i, arguments: t.arguments(words)})
		}
	}
	return all
}

// fill draws the words of a question.
func fill(question string, draw *rand.Rand) (text string, words []string) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(question, "{")
		b.WriteString(before)
		if !found {
			return b.String(), words
		}
		kind, after, _ := strings.Cut(rest, "}")
		w := word(kind, draw)
		words = append(words, w)
		b.WriteString(w)
		question = after
	}
}

// TasksFile encodes the tasks as a tasks file.
func TasksFile(all []Task) ([]byte, error) {
	var out []byte
	for i := range all {
		line, err := json.Marshal(&all[i])
		if err != nil {
			return nil, err
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

// splitOf returns the tasks of a split.
func splitOf(all []Task, split string) (of []*Task) {
	for i := range all {
		if all[i].Split == split {
			of = append(of, &all[i])
		}
	}
	return of
}

// text returns the answer of the policy for a choice of a form and of a tool.
func (t *Task) text(c choice, known []tool) (string, error) {
	if c.form == formNone {
		return "I would rather answer that without a tool.", nil
	}
	chosen := &known[c.tool]
	arguments := chosen.any
	if c.tool == t.name {
		arguments = t.arguments
	}
	body, err := json.Marshal(map[string]any{"name": chosen.name, "arguments": arguments})
	if err != nil {
		return "", err
	}
	switch c.form {
	case formTagged:
		return "<tool_call>" + string(body) + "</tool_call>", nil
	case formFenced:
		return "```json\n" + string(body) + "\n```", nil
	default: // the last brace is missing
		return "<tool_call>" + string(body[:len(body)-1]) + "</tool_call>", nil
	}
}
