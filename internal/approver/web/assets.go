package web

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/ui"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed static/approver.css
var static embed.FS

var pageNames = []string{"pending", "bulk", "outcomes", "history", "permissions", "detail", "signin", "message", "slack", "connect", "consent", "grants"}

func newPages() *ui.Pages {
	funcs := template.FuncMap{
		"nth":   func(i int) int { return i + 1 },
		"wait":  wait,
		"level": risk.LevelName,
		"label": label,
		"tone":  badgeClass,
		"past":  pastTense,
		"via":   via,
		"who":   personOf,
	}
	return ui.NewPages(templates, "templates", funcs, []string{"parts"}, pageNames)
}

// personOf returns the display name of a principal.
func personOf(name string) string { return strings.TrimPrefix(name, settings.NamePrefix) }

// serveStatic serves the stylesheets, the script and the icon.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	content, media, ok := ui.Static(name)
	if !ok {
		var err error
		if content, err = static.ReadFile("static/" + name); err != nil {
			problem.Write(w, schema.Errorf(schema.KindNotFound, "The file does not exist."))
			return
		}
		media = ui.MediaType(name)
	}
	sendFile(w, content, media)
}

func sendFile(w http.ResponseWriter, content []byte, media string) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(content) // the client disconnected; there is no one to report the error to
}

// wait returns the remaining time in words, in the format of the script's countdown.
func wait(until, now time.Time) string {
	left := until.Sub(now).Round(time.Second)
	switch {
	case left <= 0:
		return "expired"
	case left < time.Minute:
		return fmt.Sprintf("%d s left", int(left.Seconds()))
	case left < time.Hour:
		return fmt.Sprintf("%d min %02d s left", int(left.Minutes()), int(left.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min left", int(left.Hours()), int(left.Minutes())%60)
}

// label returns a state, level or verb with its first letter in upper case, as it starts a line.
func label(text any) string {
	switch s := fmt.Sprint(text); s {
	case "":
		return ""
	case permissionActive:
		return "Active"
	case permissionExpired:
		return "Expired"
	default:
		return strings.ToUpper(s[:1]) + s[1:]
	}
}

// badgeClass returns the CSS class of the badge for a state.
func badgeClass(state any) string {
	switch fmt.Sprint(state) {
	case string(ledger.Pending):
		return "warning"
	case string(ledger.Approved), string(ledger.Running):
		return "info"
	case string(ledger.Succeeded), permissionActive:
		return "success"
	case string(ledger.Denied), string(ledger.Failed), string(ledger.Unknown):
		return "danger"
	}
	return ""
}

// pastTense returns the past tense of a decision.
func pastTense(kind ledger.DecisionKind) string {
	switch kind {
	case ledger.Approve:
		return "approved"
	case ledger.Deny:
		return "denied"
	case ledger.Edit:
		return "edited and approved"
	case ledger.Extend:
		return "deadline extended"
	case ledger.Revoke:
		return "withdrawn"
	}
	return string(kind)
}

// via returns the display name of a decision's channel.
func via(channel string) string {
	switch channel {
	case "web":
		return "on the web"
	case "api":
		return "through the API"
	case "slack":
		return "in Slack"
	}
	return "through " + channel
}
