// Package archtest holds the house rules as tests: who may import whom, what every package and function
// looks like, and what the template must and must not say. It refuses to hold anything that runs elsewhere.
package archtest
