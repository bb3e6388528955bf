package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/ui"
	"github.com/callyard/callyard/pkg/schema"
)

// maxRows is the maximum number of rows per page.
const maxRows = 100

type serversPage struct {
	Servers []callyard.ServerItem
	Found   int
	All     int
	State   string // the filter
	Query   string
	Cut     bool // there are more rows than are shown
}

// serverList serves the page of all servers.
func (c *Console) serverList(w http.ResponseWriter, r *http.Request, v Visit) error {
	servers, err := c.servers(r.Context(), v)
	if err != nil {
		return c.orKey(w, r, err)
	}
	q := r.URL.Query()
	page := serversPage{All: len(servers), State: q.Get("state"), Query: strings.TrimSpace(q.Get("q"))}
	for _, s := range servers {
		if page.State == "trouble" && !hasTrouble(s) || page.State == "changed" && len(s.ChangedTools) == 0 || !strings.Contains(strings.ToLower(s.ID), strings.ToLower(page.Query)) {
			continue
		}
		page.Servers = append(page.Servers, s)
	}
	order := map[bool]int{true: 0, false: 1} // servers that need attention come first
	slices.SortFunc(page.Servers, func(a, b callyard.ServerItem) int {
		return cmp.Or(cmp.Compare(order[hasTrouble(a)], order[hasTrouble(b)]), cmp.Compare(a.ID, b.ID))
	})
	page.Found = len(page.Servers)
	if page.Cut = page.Found > maxRows; page.Cut {
		page.Servers = page.Servers[:maxRows]
	}
	return c.render(w, v, http.StatusOK, "servers", view{Title: "Servers", Here: Root + "/servers", Live: true, Page: page})
}

type serverPage struct {
	S       callyard.ServerItem
	Sum     workerTotals
	Tools   []toolRow
	More    bool   // there are more tools than are shown
	Unknown string // the reason why the tools are not known
	Pins    *pinsView
	Restart string // form token
	Switch  string // form token
	// Off is the switch that disables all tools of this server, or nil.
	Off    *callyard.Switch
	Done   string
	Notice string
}

// workerTotals holds totals over the workers of a server.
type workerTotals struct{ Sessions, Restarts int64 }

// server serves the page of one server.
func (c *Console) server(w http.ResponseWriter, r *http.Request, v Visit) error {
	id := r.URL.Query().Get("id")
	if id == "" {
		http.Redirect(w, r, Root+"/servers", http.StatusSeeOther)
		return nil
	}
	page := serverPage{Done: doneOf(r, v)}
	err := c.fillServer(r.Context(), v, id, &page)
	if err != nil {
		return c.orKey(w, r, err)
	}
	return c.render(w, v, http.StatusOK, "server", view{Title: id, Here: Root + "/servers", Live: true, Page: page})
}

// fillServer requests the data of a server's page from the front door.
func (c *Console) fillServer(ctx context.Context, v Visit, id string, page *serverPage) (err error) {
	page.S, err = get[callyard.ServerItem](ctx, c, v, with(api.GetServer, id))
	if err != nil {
		return err
	}
	for _, w := range page.S.Workers {
		page.Sum.Sessions += w.Sessions
		page.Sum.Restarts += w.Restarts
	}
	page.Restart, page.Switch = v.Token(Root+"/server/restart"), v.Token(Root+"/server/switch")
	if page.Off, err = (switchPages{c}).serverSwitch(ctx, v, id); err != nil {
		return err
	}
	list, err := toolPages{c}.toolPage(ctx, v, toolFilter{Server: id})
	switch kind := schema.KindOf(err); {
	case err == nil:
		page.Tools, page.More = list.Rows, list.Next != ""
		if len(list.Unknown) > 0 {
			page.Unknown = "The tools were not read yet."
		}
	case kind == schema.KindNotFound || kind == schema.KindUnavailable || kind == schema.KindForbidden:
		page.Unknown, err = schema.AsError(err).Detail, nil // show the page without them
	default:
		return err
	}
	if page.S.Pin != nil {
		page.Pins, err = c.pins(ctx, v, id)
		if schema.KindOf(err) == schema.KindForbidden {
			page.Notice, err = "Your key may not see the accepted definitions of this server.", nil
		}
	}
	return err
}

// done returns a value of the query parameter done; see [ui.Done].
func (v Visit) done(act string) string { return ui.Done(act, v.Token) }

// doneOf returns the message that confirms the previous act, or "" if the user has not done it.
func doneOf(r *http.Request, v Visit) string {
	switch ui.DoneOf(r, v.Token) {
	case "restart":
		return "The server is restarting on all workers. Calls that run finish first."
	case "drain":
		return "The worker is draining: it finishes its calls, and its process ends."
	case "all-off":
		return "The tools of the server are disabled. Callers are refused with your reason."
	case "all-on":
		return "What was disabled for the whole server is enabled. Tools that were disabled one by one stay so."
	case "retry":
		return "This is the new batch with the calls that had failed. They go through the policy like any other."
	case "accept":
		return "The definitions are accepted."
	case "off":
		return "The tool is disabled. Callers are refused with your reason."
	case "on":
		return "The tool is enabled."
	case "cancel":
		return "The cancellation is requested."
	case "key":
		return "The key is changed. It counts at every front door within a second."
	case "revoke":
		return "The key is revoked. No front door accepts it from a second later on."
	case "replay":
		return "This is the new call. It went through the policy like any other."
	case "run-again":
		return "The call runs again for its caller. This page follows it."
	case "settle":
		return "The outcome is recorded."
	}
	return ""
}

// restart replaces the processes and sessions of a server.
func (c *Console) restart(w http.ResponseWriter, r *http.Request, v Visit) error {
	id := r.PostForm.Get("server")
	if _, err := c.ask(r.Context(), v, with(api.RestartServer, id)); err != nil {
		return err
	}
	c.acted(v, "restart", "server", id)
	http.Redirect(w, r, at(Root+"/server", "id", id, "done", v.done("restart")), http.StatusSeeOther)
	return nil
}

// acted logs a user's action. The front door records the action under the name of the key.
func (c *Console) acted(v Visit, what string, args ...any) {
	c.o.Log.Info("a person acted in the console", append([]any{"person", v.Person, "act", what}, args...)...)
}
