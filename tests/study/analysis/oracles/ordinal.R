# Writes ordinal.json: what R's ordinal::clmm and clmm2 (Laplace approximation) and clm make of data with ordered levels, so that
# a test compares coefficients, thresholds, standard errors, standard deviations and log-likelihoods.
# Run in this folder:  Rscript ordinal.R   (R 4.2.2, ordinal 2022.11.16)
suppressMessages({library(ordinal); library(jsonlite)})
set.seed(2)

cut_levels <- function(eta, thresholds) findInterval(eta + rlogis(length(eta)), thresholds) + 1L

# Agreement: each participant sees all items in one condition; half of the items have an AI that is wrong.
agreement <- expand.grid(item = sprintf("i%02d", 1:16), participant = sprintf("p%02d", 1:40))
agreement <- within(agreement, {
  condition <- factor(c("none", "saliency", "examples", "both")[(as.integer(participant) - 1) %% 4 + 1],
                      levels = c("none", "saliency", "examples", "both"))
  wrong <- as.integer(as.integer(item) %% 2 == 0)
  level <- cut_levels(c(0, 0.6, -0.3, 0.4)[as.integer(condition)] * ifelse(wrong == 1, -1, 1) - 1.2 * wrong +
                      rnorm(40, 0, 0.8)[as.integer(participant)] + rnorm(16, 0, 0.6)[as.integer(item)], c(-1.8, -0.3, 1.4))
})
agreement <- agreement[c("participant", "item", "condition", "wrong", "level")]

# Confidence in five steps, with participants who differ in the effect of difficulty.
confidence <- expand.grid(trial = 1:15, participant = sprintf("p%02d", 1:40))
own <- matrix(rnorm(80), 40) %*% chol(matrix(c(1, 0.3, 0.3, 0.5), 2))
confidence <- within(confidence, {
  difficulty <- round(rnorm(length(trial)), 2)
  step <- cut_levels(own[as.integer(participant), 1] + (own[as.integer(participant), 2] - 0.8) * difficulty, c(-2.5, -1, 0.5, 2))
})
confidence <- confidence[c("participant", "difficulty", "step")]

wines <- transform(wine, rating = as.integer(rating))[c("rating", "temp", "contact", "judge")]
tight <- clmm.control(grtol = 1e-8)
cases <- list(
  list(name = "wine", data = wines, formula = rating ~ temp + contact + (1 | judge)),
  list(name = "wine_two_groupings", data = transform(wine, rating = as.integer(rating))[c("rating", "temp", "contact", "judge", "bottle")],
       formula = rating ~ temp * contact + (1 | judge) + (1 | bottle)),
  list(name = "wine_contact", data = wines[c("rating", "contact", "judge")], formula = rating ~ contact + (1 | judge)),
  list(name = "wine_fixed", data = wines, formula = rating ~ temp + contact),
  list(name = "agreement", data = agreement, formula = level ~ condition * wrong + (1 | participant) + (1 | item)),
  list(name = "confidence", data = confidence, formula = step ~ difficulty + (1 + difficulty | participant)))

# The model with thresholds of its own for each level of contact, by the older function, which alone has them.
nominal <- function(data) {
  fit <- clmm2(rating ~ 1, nominal = ~ contact, random = judge, data = data, nAGQ = 1, Hess = FALSE,
               control = clmm2.control(grtol = 1e-8))
  list(loglik = as.numeric(logLik(fit)), thresholds = unname(fit$Theta))
}

describe <- function(case) {
  data <- case$data; response <- all.vars(case$formula)[1]
  data[[response]] <- factor(data[[response]], ordered = TRUE)
  mixed <- grepl("|", paste(deparse(case$formula), collapse = ""), fixed = TRUE)
  fit <- if (mixed) clmm(case$formula, data, control = tight) else clm(case$formula, data = data)
  table <- coef(summary(fit)); cuts <- names(fit$alpha); terms <- names(fit$beta)
  spread <- if (mixed) lapply(VarCorr(fit), function(v) list(sd = I(unname(sqrt(diag(v)))), correlation = unname(cov2cor(v))))
  list(name = case$name, formula = paste(deparse(case$formula, width.cutoff = 500), collapse = ""), data = case$data,
       levels = lapply(Filter(is.factor, case$data), levels), terms = terms, estimate = unname(fit$beta),
       se = unname(table[terms, 2]), thresholds = unname(fit$alpha), thresholds_se = unname(table[cuts, 2]),
       nominal = if (case$name == "wine_contact") nominal(data), loglik = as.numeric(logLik(fit)), df = attr(logLik(fit), "df"), random = spread)
}

write_json(lapply(cases, describe), "ordinal.json", digits = 10, auto_unbox = TRUE, dataframe = "columns", null = "null")
