package console

import (
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// resultView is the outcome of a call.
type resultView struct {
	// Outcome is "result", "held" or "accepted". An accepted call continues to run, and its page
	// shows the result later.
	Outcome    string
	CallID     string
	IsError    bool
	Blocks     []blockView
	Structured []byte
	Raw        []byte
	Took       string
	Reasons    []string // the reasons why the call is held
	ApproveAt  string
	Expires    time.Time
}

// blockView is a content block of a result.
type blockView struct {
	Type, Text, MIME, Name, URI string
	Link                        string       // the URI, if it is safe to follow
	Image                       template.URL // empty if it is not a displayable image
	Size                        int
	Raw                         []byte // for blocks of other types
}

// shownImages lists the image types that pages show. None of them can contain a script.
var shownImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// maxImage is the maximum size of an image on a page, in bytes of Base64.
const maxImage = 4 << 20

// readResult parses the response to a call.
func readResult(body []byte, stored bool) *resultView {
	r := &resultView{Outcome: "result", Raw: pretty(body)}
	outcome, _ := rawjson.Text(rawjson.Get(body, "outcome"))
	switch {
	case outcome == "held":
		var held callyard.ConfirmationRequest
		if json.Unmarshal(body, &held) == nil {
			r.Outcome, r.CallID, r.Reasons, r.Expires = "held", held.CallID, held.Reasons, held.ExpiresAt
			r.ApproveAt = "/a/" + url.PathEscape(held.ApprovalID)
		}
	case stored:
		r.Outcome = "accepted"
		r.CallID, _ = rawjson.Text(rawjson.Get(body, "id"))
	default:
		r.read(body)
	}
	return r
}

// read parses the result of a tool.
func (r *resultView) read(body []byte) {
	r.IsError = string(rawjson.Get(body, "isError")) == "true"
	if s := rawjson.Get(body, "structuredContent"); s != nil {
		r.Structured = pretty(s)
	}
	var blocks []json.RawMessage
	if json.Unmarshal(rawjson.Get(body, "content"), &blocks) != nil {
		return
	}
	for _, raw := range blocks {
		r.Blocks = append(r.Blocks, readBlock(raw))
	}
}

func readBlock(raw json.RawMessage) blockView {
	member := func(of []byte, name string) string {
		s, _ := rawjson.Text(rawjson.Get(of, name))
		return s
	}
	b := blockView{Type: member(raw, "type"), Text: member(raw, "text"), MIME: member(raw, "mimeType"), Name: member(raw, "name"), URI: member(raw, "uri")}
	data := member(raw, "data")
	if inner := rawjson.Get(raw, "resource"); inner != nil {
		b.URI, b.MIME, b.Text = member(inner, "uri"), member(inner, "mimeType"), member(inner, "text")
		data = member(inner, "blob")
	}
	if data != "" {
		decoded, err := base64.StdEncoding.DecodeString(data)
		b.Size = len(decoded)
		if err == nil && len(data) <= maxImage && slices.Contains(shownImages, b.MIME) {
			b.Image = template.URL("data:" + b.MIME + ";base64," + base64.StdEncoding.EncodeToString(decoded)) //nolint:gosec // a type of the list, and nothing but Base64
		}
	}
	if u, err := url.Parse(b.URI); err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" {
		b.Link = u.String()
	}
	switch b.Type {
	case "text", "image", "audio", "resource", "resource_link":
	default:
		b.Raw = pretty(raw)
	}
	return b
}

// HasImages reports whether the page needs permission to show embedded images.
func (r *resultView) HasImages() bool {
	return r != nil && slices.ContainsFunc(r.Blocks, func(b blockView) bool { return b.Image != "" })
}

// allowImages permits a page to show embedded images, and nothing else.
func allowImages(w http.ResponseWriter) {
	head := w.Header()
	head.Set("Content-Security-Policy", head.Get("Content-Security-Policy")+"; img-src 'self' data:")
}
