# Writes means.json: what R's emmeans and marginaleffects make of seven fitted models, with the models' coefficients and
# their covariance, so that a test compares the means and contrasts alone and not the fits.
# Run in this folder:  Rscript means.R   (R 4.2.2, lme4 1.1.31, emmeans 1.8.4, mvtnorm 1.1.3, marginaleffects 0.14.0)
suppressMessages({library(lme4); library(emmeans); library(marginaleffects); library(mvtnorm); library(jsonlite)})
emm_options(opt.digits = FALSE)
set.seed(1)

study <- expand.grid(trial_type = c("adversarial", "standard", "right"), explanation = c("none", "maps", "examples", "both"),
                     repeated = 1:2, participant = sprintf("p%02d", 1:12))
study <- within(study, {
  x <- round(rnorm(length(repeated)), 2)
  saliency <- as.integer(explanation %in% c("maps", "both"))
  examples <- as.integer(explanation %in% c("examples", "both"))
  own <- rnorm(12, 0, 0.7)[as.integer(participant)]
  correct <- rbinom(length(x), 1, plogis(c(-0.7, -0.2, 1.2)[as.integer(trial_type)] + 0.5 * saliency - 0.3 * examples +
                    0.4 * saliency * (trial_type == "right") + 0.3 * x + own))
})
study <- study[c("participant", "trial_type", "explanation", "saliency", "examples", "x", "correct")]
incomplete <- droplevels(subset(study, !(explanation == "both" & trial_type == "right")))
herds <- transform(lme4::cbpp, healthy = size - incidence)[c("herd", "period", "incidence", "healthy")]
teeth <- transform(ToothGrowth, dose = factor(dose, labels = c("half", "one", "two")), len = round(len + 0.1 * (supp == "VC"), 1))

tight <- glmerControl(optimizer = "bobyqa", tolPwrss = 1e-12, optCtrl = list(rhoend = 1e-9, maxfun = 1e5))
glmer_ <- function(formula, data) glmer(formula, data, binomial, control = tight)
models <- list(
  list(name = "mixed_logit", family = "binomial", link = "logit", data = study,
       fit = glmer_(correct ~ trial_type * explanation + x + (1 | participant), study),
       specs = c("explanation", "trial_type", "explanation | trial_type", "explanation * trial_type"),
       effects = c("explanation", "explanation | trial_type", "trial_type", "x")),
  list(name = "two_factors", family = "binomial", link = "logit", data = study,
       fit = glm(correct ~ trial_type * saliency + saliency * examples, binomial, study),
       specs = c("saliency * examples", "saliency | examples", "trial_type"), effects = c("saliency", "saliency | trial_type")),
  list(name = "probit", family = "binomial", link = "probit", data = study,
       fit = glm(correct ~ trial_type + explanation + x, binomial("probit"), study),
       specs = c("explanation", "trial_type"), effects = c("explanation", "x")),
  list(name = "counts_of_herds", family = "binomial", link = "logit", data = herds,
       fit = glmer_(cbind(incidence, healthy) ~ period + (1 | herd), herds), specs = "period", effects = character(0)),
  list(name = "poisson", family = "poisson", link = "log", data = warpbreaks,
       fit = glm(breaks ~ wool * tension, poisson, warpbreaks),
       specs = c("tension", "wool | tension", "wool * tension"), effects = c("wool", "tension | wool")),
  list(name = "gaussian", family = "gaussian", link = "identity", data = teeth, fit = lm(len ~ supp * dose, teeth),
       specs = c("dose", "dose | supp", "supp * dose"), effects = c("dose")),
  list(name = "empty_cell", family = "binomial", link = "logit", data = incomplete,
       fit = glm(correct ~ trial_type * explanation, binomial, incomplete),
       specs = c("explanation | trial_type", "explanation"), effects = character(0)))

sides <- function(spec) lapply(strsplit(spec, " | ", fixed = TRUE)[[1]], function(s) strsplit(s, " * ", fixed = TRUE)[[1]])
as_rows <- function(s) { s <- as.data.frame(s); s[] <- lapply(s, function(v) if (is.factor(v)) as.character(v) else v); s }

# max-t by mvtnorm with a smaller error than emmeans asks it for (its 1e-3): P(max |T| > t), and the t where it is 5%.
max_t <- function(object) {
  s <- as.data.frame(summary(object, infer = c(FALSE, TRUE), adjust = "none"))
  known <- !is.na(s$SE); df <- s$df[known][1]
  correlation <- cov2cor(as.matrix(vcov(object)))
  within <- function(q) { set.seed(2); m <- nrow(correlation)
    pmvt(rep(-q, m), rep(q, m), df = if (is.finite(df)) df else 0, corr = correlation,
         algorithm = GenzBretz(maxpts = 4e6, abseps = 2e-7)) }
  t <- abs(s[known, ncol(s) - 1])
  list(t = t, p = sapply(t, function(q) 1 - within(q)),
       critical = uniroot(function(q) within(q) - 0.95, c(1.9, 4), tol = 1e-8)$root)
}

describe <- function(grid, spec, scale) {
  parts <- sides(spec); by <- if (length(parts) > 1) parts[[2]]
  means <- emmeans(grid, parts[[1]], by = by)
  shown <- if (scale == "link") summary(means, infer = TRUE) else as_rows(summary(means, infer = FALSE))
  out <- list(spec = spec, scale = scale, means = as_rows(shown))
  pairs_ <- contrast(means, "pairwise"); first <- contrast(means, "trt.vs.ctrl1")
  out$none <- as_rows(summary(pairs_, infer = TRUE, adjust = "none"))
  if (!anyNA(out$none$estimate)) for (how in c("holm", "tukey")) {  # else emmeans counts contrasts that it does not test
    adjusted <- as_rows(summary(pairs_, infer = TRUE, adjust = how))
    out[[how]] <- adjusted[grepl("CL$|p.value", names(adjusted))]
  }
  if (!anyNA(out$none$estimate)) out$reference <- as_rows(summary(first, infer = TRUE, adjust = "holm"))
  if (is.null(by) && scale == "link" && nrow(out$means) < 5 && nrow(out$means) > 2) {
    weights <- c(1, rep(-1 / (nrow(out$means) - 1), nrow(out$means) - 1))
    if (!anyNA(out$none$estimate)) {
      out$custom <- as_rows(summary(contrast(means, list(custom = weights)), infer = TRUE))
      out$max_t <- max_t(pairs_)
    }
  }
  out
}

effect <- function(model, text) {
  parts <- sides(text); numeric <- is.numeric(model.frame(model)[[parts[[1]]]])
  forward <- function(x) data.frame(x, x + 1)  # the default since 0.20; before, +1 was centred
  variables <- if (numeric) setNames(list(if (parts[[1]] == "x") forward else c(0, 1)), parts[[1]]) else parts[[1]]
  extra <- if (inherits(model, "merMod")) list(re.form = NA) else list()
  by <- if (length(parts) > 1) parts[[2]] else TRUE
  # exact derivatives are not offered: central differences with a step whose error is below 1e-9
  made <- do.call(avg_comparisons, c(list(model, variables = variables, by = by, type = "response",
                  numderiv = list("richardson")), extra))
  keep <- intersect(c("contrast", by, "estimate", "std.error", "conf.low", "conf.high"), names(made))
  list(effect = text, rows = as.data.frame(made)[keep])
}

describe_model <- function(m) {
  beta <- if (inherits(m$fit, "merMod")) fixef(m$fit) else coef(m$fit)
  kept <- !is.na(beta)
  df <- if (m$family == "gaussian") m$fit$df.residual else Inf
  link <- ref_grid(m$fit); response <- if (m$link == "identity") NULL else regrid(link, transform = "response")
  results <- lapply(m$specs, describe, grid = link, scale = "link")
  if (!is.null(response)) results <- c(results, lapply(m$specs, describe, grid = response, scale = "response"))
  list(name = m$name, formula = paste(deparse(formula(m$fit), width.cutoff = 500)), family = m$family, link = m$link,
       data = m$data[intersect(names(m$data), all.vars(formula(m$fit)))],
       levels = lapply(Filter(is.factor, m$data), levels), terms = names(beta)[kept], coefficients = unname(beta[kept]), df = if (is.finite(df)) df,
       covariance = unname(as.matrix(vcov(m$fit, complete = FALSE))), results = results,
       effects = lapply(m$effects, effect, model = m$fit))
}

write_json(lapply(models, describe_model), "means.json", digits = NA, auto_unbox = TRUE, dataframe = "columns", na = "null",
           null = "null", pretty = FALSE)
