package todo

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/launch/native"
)

type (
	updateArguments struct {
		Todos  []string `json:"todos" jsonschema:"All tasks in order, each as \"[id] content (status)\". status is planned, pending (in progress), done or cancelled. The list replaces the one before; an empty list clears it."`
		Format string   `json:"format,omitempty" jsonschema:"What to return: simple (an acknowledgement, the default), markdown or ascii (a table)."`
	}
	listArguments struct {
		Format string `json:"format,omitempty" jsonschema:"How to write the list: simple (one task a line, the default), markdown or ascii."`
	}
)

// Limits of one list.
const (
	maxItems = 200
	maxItem  = 1000 // bytes
)

// Tools returns the tools update and list. Unused lists are dropped according to the clock now.
func Tools(now func() time.Time) []native.Tool {
	s := newStore(now)
	return []native.Tool{
		native.Must(native.Typed("update", "Replaces the to-do list of this conversation. Use it to plan work in steps and to keep their state. A list has at most 200 tasks of 1,000 bytes, and is dropped when it is not used for a day.",
			s.update, native.Title("Update the to-do list"), native.Destructive(false), native.Idempotent(), native.OpenWorld(false))),
		native.Must(native.Typed("list", "Returns the to-do list of this conversation as it was last updated.",
			s.list, native.Title("Show the to-do list"), native.ReadOnly(), native.Idempotent(), native.OpenWorld(false))),
	}
}

var (
	line = regexp.MustCompile(`^\[([^\]]+)\]\s+(.+?)\s+\(([^)]+)\)$`)

	errSession = errors.New("the caller has no session, so no list can be kept for it; call over an MCP session or as an authenticated caller")
)

func parse(text string) (item, error) {
	if len(text) > maxItem {
		return item{}, fmt.Errorf("it has %d bytes; at most %d are allowed", len(text), maxItem)
	}
	m := line.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return item{}, fmt.Errorf("%.60q has another form; write \"[id] content (status)\"", text)
	}
	status := m[3]
	switch status {
	case "in_progress", "in-progress", "inprogress": // the name in other task lists
		status = "pending"
	case "planned", "pending", "done", "cancelled":
	default:
		return item{}, fmt.Errorf("the status %.30q is not one of planned, pending, done and cancelled", status)
	}
	return item{m[1], m[2], status}, nil
}

func (s *store) update(_ context.Context, c *native.Call, in updateArguments) (string, error) {
	switch {
	case c.Session == "":
		return "", errSession
	case len(in.Todos) > maxItems:
		return "", fmt.Errorf("the list has %d tasks; at most %d are allowed", len(in.Todos), maxItems)
	}
	items := make([]item, len(in.Todos))
	for i, text := range in.Todos {
		var err error
		if items[i], err = parse(text); err != nil {
			return "", fmt.Errorf("task %d: %w", i+1, err)
		}
	}
	text, err := render(items, in.Format)
	if err != nil {
		return "", err
	}
	s.put(c.Session, items)
	switch {
	case in.Format != "" && in.Format != "simple":
		return text, nil
	case len(items) == 0:
		return "todo list cleared", nil
	}
	return "todo list updated", nil
}

func (s *store) list(_ context.Context, c *native.Call, in listArguments) (string, error) {
	if c.Session == "" {
		return "", errSession
	}
	return render(s.get(c.Session), in.Format)
}

func render(items []item, format string) (string, error) {
	switch format {
	case "", "simple":
		if len(items) == 0 {
			return "No todos", nil
		}
		var lines []string
		for _, i := range items {
			lines = append(lines, "["+i.ID+"] "+i.Content+" ("+i.Status+")")
		}
		return strings.Join(lines, "\n"), nil
	case "markdown":
		lines := []string{"| id | task | status |", "| --- | --- | --- |"}
		escape := strings.NewReplacer("|", `\|`).Replace
		for _, i := range items {
			lines = append(lines, "| "+escape(i.ID)+" | "+escape(i.Content)+" | "+escape(i.Status)+" |")
		}
		return strings.Join(lines, "\n"), nil
	case "ascii":
		return ascii(items), nil
	}
	return "", fmt.Errorf("there is no format %.30q; use simple, markdown or ascii", format)
}

// ascii draws a table; widths are in characters.
func ascii(items []item) string {
	if len(items) == 0 {
		return "No todos"
	}
	rows := append([]item{{"ID", "TASK", "STATUS"}}, items...)
	var a, b, c int
	for _, r := range rows {
		a, b, c = max(a, utf8.RuneCountInString(r.ID)), max(b, utf8.RuneCountInString(r.Content)), max(c, utf8.RuneCountInString(r.Status))
	}
	rule := "+" + strings.Repeat("-", a+2) + "+" + strings.Repeat("-", b+2) + "+" + strings.Repeat("-", c+2) + "+"
	lines := []string{rule}
	for i, r := range rows {
		lines = append(lines, fmt.Sprintf("| %-*s | %-*s | %-*s |", a, r.ID, b, r.Content, c, r.Status))
		if i == 0 {
			lines = append(lines, rule)
		}
	}
	return strings.Join(append(lines, rule), "\n")
}
