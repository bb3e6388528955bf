// Package report sums scores up: means with intervals for each level of extraction and
// category, failure types, rewards, pass@k, the comparison of two runs, and a page in HTML.
//
// It promises that a report is the same for the same scores and settings, that it states every
// setting and the digest of the scores, and that the page loads nothing from elsewhere and
// runs no script.
package report
