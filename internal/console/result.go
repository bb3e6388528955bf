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

// resultView is what a call came to.
type resultView struct {
	// Outcome is "result", "held" or "accepted" (it runs on; its page shows what comes of it).
	Outcome    string
	CallID     string
	IsError    bool
	Blocks     []blockView
	Structured []byte
	Raw        []byte
	Took       string
	Reasons    []string // why the call is held
	ApproveAt  string
	Expires    time.Time
}

// blockView is a content block of a result.
type blockView struct {
	Type, Text, MIME, Name, URI string
	Link                        string       // the URI, where a browser may follow it
	Image                       template.URL // empty where it is no image that is shown
	Size                        int
	Raw                         []byte // for blocks of other types
}

// shownImages are the types of images that pages show. None of them can hold a script.
var shownImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// maxImage is the most bytes of an image on a page, in Base64.
const maxImage = 4 << 20

// readResult reads the answer to a call.
func readResult(body []byte, stored bool) *resultView {
	r := &resultView{Outcome: "result", Raw: pretty(body)}
	outcome, _ := rawjson.Text(rawjson.Get(body, "outcome"))
	switch {
	case outcome == "held":
		var held callyard.ConfirmationRequest
		if json.Unmarshal(body, &held) == nil {
			r.Outcome, r.CallID, r.Reasons, r.Expires = "held", string(held.CallID), held.Reasons, held.ExpiresAt
			r.ApproveAt = "/a/" + url.PathEscape(string(held.ApprovalID))
		}
	case stored:
		r.Outcome = "accepted"
		r.CallID, _ = rawjson.Text(rawjson.Get(body, "id"))
	default:
		r.read(body)
	}
	return r
}

// read reads the result of a tool.
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

// HasImages says whether the page needs the right to show images that it brings itself.
func (r *resultView) HasImages() bool {
	return r != nil && slices.ContainsFunc(r.Blocks, func(b blockView) bool { return b.Image != "" })
}

// allowImages lets a page show the images that it brings itself, and nothing else more.
func allowImages(w http.ResponseWriter) {
	head := w.Header()
	head.Set("Content-Security-Policy", head.Get("Content-Security-Policy")+"; img-src 'self' data:")
}
