package htmltext

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExtractKeepsTextAndLeavesOutMarkup(t *testing.T) {
	base, err := url.Parse("https://example.com/a/b")
	if err != nil {
		t.Fatal(err)
	}
	for document, want := range map[string]string{
		"<p>one  two\n three</p><p>four</p>":                                    "one two three\n\nfour",
		"<h2>Head</h2>text<ul><li>a<li>b</ul>after":                             "## Head\n\ntext\n\n- a\n- b\n\nafter",
		"a<script>evil()</script>b<style>x{}</style>c":                          "abc",
		"a<script>'</script '<b>x</b></script>b":                                "axb", // the first end tag counts, as in browsers
		"a <b>bold</b>, <i>it</i>alic":                                          "a bold, italic",
		"<pre>  x\n    y</pre>z":                                                "x\n    y\n\nz",
		"<table><tr><td>a<td>b<tr><td>c</table>":                                "a b\nc",
		"x &lt;script&gt; &amp; &eacute;":                                       "x <script> & é",
		"<!-- comment -->a<!doctype html>":                                      "a",
		"a<template><p>b<template>c</template>d</template>e":                    "ae",
		"a<svg><text>b</text></svg>c":                                           "ac",
		"a<svg class=icon />b<svg><svg/><text>c</text></svg>d":                  "abd",
		"<a href='/x'>rel</a> <a href=\"mailto:a@b\">mail</a> <a href=#y>i</a>": "rel <https://example.com/x> mail i",
		"<img alt='A cat'><img src=x>":                                          "[A cat]",
		"unclosed <b":                                                           "unclosed",
		"a\x00b\x1b[31m":                                                        "ab[31m",
		"":                                                                      "",
	} {
		if got := Extract(document, Options{Links: base}).Text; got != want {
			t.Errorf("%q: %q, want %q", document, got, want)
		}
	}
	if d := Extract("<head><title> A \n title </title><title>x</title></head><body>b", Options{}); d.Title != "A title" || d.Text != "b" {
		t.Errorf("%+v", d)
	}
	if d := Extract("<a href=/x>y</a>", Options{}); d.Text != "y" {
		t.Errorf("%+v", d)
	}
}

func TestTheTextIsBoundedAtACharacter(t *testing.T) {
	d := Extract(strings.Repeat("é", 1000), Options{MaxBytes: 101})
	if !d.Truncated || len(d.Text) != 100 || !utf8.ValidString(d.Text) {
		t.Errorf("%d bytes, truncated %v", len(d.Text), d.Truncated)
	}
}

func TestHostileDocumentsTakeLinearTime(t *testing.T) {
	for name, part := range map[string]string{
		"nested": "<div>", "formatting": "<b><i><a href=x>", "tables": "<table><tr><td>", "templates": "<template>", "open tags": "<a ",
		"attributes": "<a b=c d ", "entities": "&amp", "comments": "<!--", "comment ends": "<!-- --", "spaces": " \n", "less": "<", "scripts": "<script><!--", "lists": "<li>",
	} {
		document := strings.Repeat(part, (1<<20)/len(part))
		start := time.Now()
		d := Extract(document, Options{MaxBytes: 512 << 10})
		if took := time.Since(start); took > 10*time.Second { // generous, for a busy machine
			t.Errorf("%s: %v", name, took)
		}
		if len(d.Text) > 512<<10 {
			t.Errorf("%s: %d bytes", name, len(d.Text))
		}
	}
}

func FuzzExtract(f *testing.F) {
	for _, seed := range []string{"<p>a</p>", "<script>x</script>y", "<a href='http://x/'>b</a>", "<pre>\n a", "<title>t", "<template><svg>", "&#0;&#xd800;", "\xff\xfe<b>", "<li><td><h6>"} {
		f.Add(seed, 10)
	}
	base := &url.URL{Scheme: "https", Host: "example.com"}
	f.Fuzz(func(t *testing.T, document string, most int) {
		most &= 0xfff
		d := Extract(document, Options{MaxBytes: most, Links: base})
		if !utf8.ValidString(d.Text) || !utf8.ValidString(d.Title) {
			t.Errorf("not UTF-8: %q, %q", d.Text, d.Title)
		}
		if most > 0 && len(d.Text) > most {
			t.Errorf("%d bytes of %d", len(d.Text), most)
		}
		if strings.ContainsAny(d.Text, "\x00\x1b") {
			t.Errorf("control characters: %q", d.Text)
		}
		if plain := Extract("<script>"+strings.ReplaceAll(document, "<", "")+"</script>", Options{}); plain.Text != "" {
			t.Errorf("the text of a script: %q", plain.Text)
		}
	})
}
