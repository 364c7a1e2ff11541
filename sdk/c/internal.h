/* What the SDK's own files say to each other. */
#ifndef WATCHFIRE_INTERNAL_H
#define WATCHFIRE_INTERNAL_H

#include "bindings/watchfire_rule.h"
#include "watchfire.h"

typedef exports_watchfire_rule_rule_list_setting_error_t error_list;

struct wf_problems { error_list list; };

/* Reads settings into their variables and checks them; whether all is well. Where it is not, what was there before is
   put back. */
bool wf_read_settings(const uint8_t *json, size_t len, bool keep, struct wf_problems *problems);

/* A copy of a text in the contract's form. */
watchfire_rule_string_t wf_copy(const char *text);

/* Makes room for one more at the end of a list; its place. */
void *wf_push(void **list, size_t *len, size_t size);

#endif
