package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
)

// show sends the request and prints the report: verbatim with --output json or yaml, else as people
// formats it.
func show[T any](ctx context.Context, c *client, q request, people func(*T) error) error {
	var v T
	raw, err := c.report(ctx, q, &v)
	if err != nil {
		return err
	}
	if c.out.structured() {
		return c.out.document(raw)
	}
	return people(&v)
}

// pageMost limits the number of items requested per page.
const pageMost = 500

// page is one page of a list. Exactly one of its lists is set.
type page struct {
	Calls       []json.RawMessage `json:"calls"`
	Batches     []json.RawMessage `json:"batches"`
	Approvals   []json.RawMessage `json:"approvals"`
	Permissions []json.RawMessage `json:"permissions"`
	Tools       []json.RawMessage `json:"tools"`
	Sets        []json.RawMessage `json:"sets"`
	Keys        []json.RawMessage `json:"keys"`
	Tenants     []json.RawMessage `json:"tenants"`
	Records     []json.RawMessage `json:"records"`
	Next        string            `json:"next"`
	NextCursor  string            `json:"next_cursor"`
	Unknown     []string          `json:"unknown"` // servers whose tools are not known
	Quarantined []quarantinedTool `json:"quarantined"`
}

// list holds the items of all pages of a list.
type list[T any] struct {
	raw     []json.RawMessage // each item verbatim
	items   []T
	next    string // the cursor after the last page that was read
	unknown []string
	hidden  []quarantinedTool
}

// namesOf returns the name of each item, for the completion of arguments.
func namesOf[T any](l *list[T], err error, name func(*T) string) ([]string, error) {
	if err != nil {
		return nil, err
	}
	names := make([]string, len(l.items))
	for i := range l.items {
		names[i] = name(&l.items[i])
	}
	return names, nil
}

// readList follows the pages to the end, or until it has limit items if limit is not 0. ask returns
// the request for at most most items, starting at cursor.
func readList[T any](ctx context.Context, c *client, limit int, ask func(most int, cursor string) request) (*list[T], error) {
	l := &list[T]{raw: []json.RawMessage{}}
	for {
		most := pageMost
		if limit > 0 {
			most = min(limit-len(l.raw), pageMost)
		}
		var p page
		if _, err := c.report(ctx, ask(most, l.next), &p); err != nil {
			return nil, err
		}
		for _, raw := range slices.Concat(p.Calls, p.Batches, p.Approvals, p.Permissions, p.Tools, p.Sets, p.Keys, p.Tenants, p.Records) {
			var item T
			if err := json.Unmarshal(raw, &item); err != nil {
				return nil, c.foreign()
			}
			l.raw, l.items = append(l.raw, raw), append(l.items, item)
		}
		for _, id := range p.Unknown {
			if !slices.Contains(l.unknown, id) {
				l.unknown = append(l.unknown, id)
			}
		}
		l.hidden = append(l.hidden, p.Quarantined...)
		before := l.next
		if l.next = cmp.Or(p.Next, p.NextCursor); l.next == "" || l.next == before || limit > 0 && len(l.raw) >= limit {
			return l, nil
		}
	}
}

// print writes the list: with --output json or yaml as the given member of an object, else as a
// table. Below the table it prints more if there are further items.
func (l *list[T]) print(c *client, member string, header []string, row func(*T) []cell, more string) error {
	if c.out.structured() {
		answer := map[string]any{member: l.raw}
		if l.next != "" {
			answer["next"] = l.next
		}
		return c.out.value(answer)
	}
	rows := make([][]cell, 0, len(l.items))
	for i := range l.items {
		rows = append(rows, row(&l.items[i]))
	}
	if err := c.out.table(header, rows); err != nil || l.next == "" {
		return err
	}
	return c.note.text(more)
}
