// Package report summarizes scores: means with intervals for each level of extraction and each
// category, failure types, rewards, pass@k, the comparison of two runs, and an HTML page.
//
// The same scores and settings give the same report. A report contains every setting and the digest
// of the scores. The page loads nothing and runs no script.
package report
