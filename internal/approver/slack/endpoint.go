package slack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"time"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/pkg/bus"
)

// Paths of the HTTP endpoint.
const (
	InteractionsPath = "/slack/interactions"
	CommandsPath     = "/slack/commands"
)

const (
	// maxBody exceeds the size of Slack's requests. An interaction includes the whole message.
	maxBody = 1 << 20
	// readFor is the timeout for reading a request.
	readFor = 5 * time.Second
	// smallBodies and largeBodies are the memory for all requests that are being read: for up to 64 KiB
	// of each, and for the rest. Anybody can send them, because their signature is checked afterwards.
	smallBodies = 8 << 20
	largeBodies = 8 << 20
)

// Headers of a signed request.
const (
	headerSignature = "X-Slack-Signature"
	headerTimestamp = "X-Slack-Request-Timestamp"
)

// serveHTTP handles the HTTP requests of Slack. It uses nothing of a request before it has verified
// the signature over the exact body, and handles each request once. A refusal is a bare status,
// which reveals nothing to attackers.
func (i *intake) serveHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	refuse := func(status int, why string) {
		i.o.Log.Warn("a request to the Slack endpoint was refused", "why", why, "path", r.URL.Path)
		w.WriteHeader(status)
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if !i.o.Config.Endpoint() {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/x-www-form-urlencoded" {
		refuse(http.StatusUnsupportedMediaType, "it is not a form")
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readFor)) // the recorder of a test does not support it
	var held bodies.Reservation
	defer held.Release()
	body, err := i.budget.Read(&held, r.Body, r.ContentLength, maxBody)
	if err != nil {
		w.Header().Set("Connection", "close")
	}
	switch {
	case errors.Is(err, bodies.ErrFull):
		refuse(http.StatusServiceUnavailable, "too many others are being read")
		return
	case err != nil:
		refuse(http.StatusBadRequest, "it is too long, or arrived incomplete")
		return
	}
	if why := verify(r.Header, body, i.signing); why != "" {
		refuse(http.StatusUnauthorized, why)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), takeFor)
	defer cancel()
	// The signature covers the timestamp verbatim, so a repeated request has the same bytes.
	sum := sha256.Sum256(append([]byte(r.Header.Get(headerTimestamp)+":"), body...))
	switch err := i.once.Take(ctx, "http-"+hex.EncodeToString(sum[:])[:48]); {
	case errors.Is(err, bus.ErrConflict):
		refuse(http.StatusConflict, "it was received before")
		return
	case err != nil:
		i.o.Log.Error("a request from Slack cannot be accepted", "error", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		refuse(http.StatusBadRequest, "its form cannot be read")
		return
	}
	switch r.URL.Path {
	case CommandsPath:
		i.serveCommand(ctx, w, form)
	case InteractionsPath:
		var c api.InteractionCallback
		if len(form["payload"]) != 1 || json.Unmarshal([]byte(form.Get("payload")), &c) != nil {
			refuse(http.StatusBadRequest, "its payload cannot be read")
			return
		}
		if why := i.foreign(&c); why != "" {
			refuse(http.StatusForbidden, why)
			return
		}
		if !i.begin(func(ctx context.Context) { i.decisions.act(ctx, &c) }) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK) // an empty response acknowledges it
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// verify returns the reason why a request is not a current request of Slack, or "" if it is.
func verify(h http.Header, body []byte, secret string) string {
	if len(h[headerSignature]) != 1 || len(h[headerTimestamp]) != 1 {
		return "it has no signature, or more than one"
	}
	v, err := api.NewSecretsVerifier(h, secret)
	switch {
	case errors.Is(err, api.ErrExpiredTimestamp):
		return "its timestamp differs from this clock by more than five minutes"
	case err != nil:
		return "its signature is malformed"
	}
	if _, err := v.Write(body); err != nil {
		return "its signature cannot be checked"
	}
	if v.Ensure() != nil {
		return "its signature does not match its body"
	}
	return ""
}

func (i *intake) serveCommand(ctx context.Context, w http.ResponseWriter, form url.Values) {
	for _, name := range []string{"team_id", "api_app_id", "user_id", "command", "text"} {
		if len(form[name]) > 1 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	c := api.SlashCommand{TeamID: form.Get("team_id"), APIAppID: form.Get("api_app_id"), UserID: form.Get("user_id"), UserName: form.Get("user_name"), Command: form.Get("command"), Text: form.Get("text")}
	if !i.isOurCommand(&c) {
		i.o.Log.Warn("a command from Slack was refused: it belongs to another workspace or app")
		w.WriteHeader(http.StatusForbidden)
		return
	}
	body, err := json.Marshal(i.commands.answer(ctx, &c))
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // Slack disconnected; there is no one to report the error to
}
