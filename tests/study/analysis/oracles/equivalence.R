# Writes equivalence.json: p of R's emmeans for the equivalence of contrasts, uncorrected and by Holm's method. The
# contrasts are those of means.json on the response scale: of these models, which have no random effects, also the
# population's.
# Run in this folder:  Rscript equivalence.R   (R 4.2.2, emmeans 1.8.4)
suppressMessages({library(emmeans); library(jsonlite)})
emm_options(opt.digits = FALSE)
deltas <- c(two_factors = 0.3, probit = 0.3, gaussian = 9)
cases <- Filter(function(case) case$name %in% names(deltas), read_json("means.json", simplifyVector = TRUE, simplifyDataFrame = FALSE))
describe <- function(case) {
  delta <- deltas[[case$name]]
  wanted <- Filter(function(r) r$scale == (if (case$name == "gaussian") "link" else "response") && !grepl("|", r$spec, fixed = TRUE), case$results)
  lapply(wanted, function(r) {
    df <- if (case$name == "gaussian") case$df else Inf
    object <- emmobj(r$none$estimate, diag(r$none$SE^2, length(r$none$SE)), levels = list(contrast = seq_along(r$none$estimate)), df = df)
    p <- function(how) test(object, delta = delta, side = "equivalence", adjust = how)$p.value
    list(name = case$name, spec = r$spec, delta = delta, p = p("none"), holm = p("holm"))
  })
}
write_json(unlist(lapply(cases, describe), recursive = FALSE), "equivalence.json", digits = NA, auto_unbox = TRUE)
