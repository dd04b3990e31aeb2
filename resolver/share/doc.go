// Package share divides something that is bounded among the tenants that use it: places (what may run or be open at a
// time), and turns (what may begin in a second). A tenant is any name; most callers take a project's or a key's.
//
// What it promises: who waits is served in rounds by tenant, and within a tenant first come, first served. While
// other tenants wait, one tenant gets no place beyond a quarter of them (at least one). A tenant that holds a quarter
// never gets one of the last quarter of the places, so that next to one tenant that takes all it can get, another finds
// a place at once. A tenant alone may use three quarters. No waiter is overtaken by a later one of the same tenant, and
// no place stays free while a tenant waits that may have it.
//
// What it needs: that places are given back. Memory is in proportion to the waiters and to the places, so a caller that
// serves strangers bounds how long a call waits, with its context, and how many calls there are.
//
// What it does not do: it takes nothing away. A tenant that holds three quarters when others come keeps them until it
// gives them back; the last quarter is there for the others until then. It knows no weights and no priorities.
package share
